// Append eviction events to a file: one JSON line each, each event once.
//
//	./consumer FILE        (SUBLET_NATS_URL, SUBLET_NAMESPACE, SUBLET_DURABLE: see ../README.md)
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const stream = "SUBLET_EVENTS"

var (
	url       = cmp.Or(os.Getenv("SUBLET_NATS_URL"), nats.DefaultURL)
	namespace = cmp.Or(os.Getenv("SUBLET_NAMESPACE"), "*")
	durable   = cmp.Or(os.Getenv("SUBLET_DURABLE"), "example-go")
)

// event is what makes one known: any node may write another one's id, but each publishes on subjects of its own.
type event struct{ ID, Node string }

var identity = regexp.MustCompile(`^[0-9a-f-]{36}/[a-z]+/[0-9]+$`)

// journal is the file and the events in it.
type journal struct {
	file *os.File
	seen map[event]bool
}

// openJournal removes a line that a crash cut short: its event was not acknowledged.
func openJournal(path string) journal {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	must(err)
	j, whole, lines := journal{file, map[event]bool{}}, int64(0), bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			must(file.Truncate(whole))
			return j
		}
		var known event
		must(json.Unmarshal(line, &known))
		j.seen[known], whole = true, whole+int64(len(line))
	}
}

// record does the work of one message, unless it was done before; false for what is no event.
func (j journal) record(m jetstream.Msg) bool {
	// As they are written: Get would look for "Ce-Id".
	id, kind := strings.Join(m.Headers()["ce-id"], ""), strings.Join(m.Headers()["ce-type"], "")
	name, err := json.Marshal(kind)
	known := event{id, m.Subject()[strings.LastIndex(m.Subject(), ".")+1:]}
	if err != nil || !identity.MatchString(id) || !json.Valid(m.Data()) {
		log.Printf("not an event, put aside: %s", m.Subject())
		return false
	}
	if !j.seen[known] {
		body := strings.ReplaceAll(string(m.Data()), "\n", " ")
		_, err := fmt.Fprintf(j.file, `{"id":%q,"node":%q,"type":%s,"data":%s}`+"\n", id, known.Node, name, body)
		must(errors.Join(err, j.file.Sync())) // ends the program: the next start repairs the file
		j.seen[known] = true
	}
	return true
}

// consumerOf takes the durable consumer as it is, and creates it where there is none.
func consumerOf(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	consumer, err := js.Consumer(ctx, stream, durable)
	if !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return consumer, err
	}
	return js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable:       durable,
		FilterSubject: "sublet.cluster.v1.event.eviction.*." + strings.ReplaceAll(namespace, ".", "_") + ".*",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       30 * time.Second,
		MaxAckPending: 1,  // one at a time keeps the order over a crash
		MaxDeliver:    -1, // none is given up
	})
}

// follow handles the durable's messages, one after the other: first the work, then the acknowledgement.
func follow(ctx context.Context, js jetstream.JetStream, j journal) error {
	consumer, err := consumerOf(ctx, js)
	for err == nil {
		waiting, cancel := context.WithTimeout(ctx, 5*time.Second)
		m, failed := consumer.Next(jetstream.FetchContext(waiting))
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(failed, nats.ErrTimeout) || errors.Is(failed, context.DeadlineExceeded): // nothing new
		case failed != nil:
			return failed
		case j.record(m):
			err = m.Ack()
		default:
			err = m.Term()
		}
	}
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	j := openJournal(os.Args[1])
	nc, err := nats.Connect(url, nats.Name(durable), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.IgnoreAuthErrorAbort(), // a login may come back; what the connection meets goes to stderr
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { log.Printf("connection: %v", err) }))
	must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	must(err)
	for ctx.Err() == nil {
		if err := follow(ctx, js, j); ctx.Err() == nil {
			log.Printf("again in a second: %v", err)
			time.Sleep(time.Second)
		}
	}
	_ = nc.FlushTimeout(time.Second) // the last acknowledgement
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
