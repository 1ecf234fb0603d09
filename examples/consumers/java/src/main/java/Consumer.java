import io.nats.client.Connection;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.JetStreamSubscription;
import io.nats.client.Message;
import io.nats.client.Nats;
import io.nats.client.Options;
import io.nats.client.PullSubscribeOptions;
import io.nats.client.api.AckPolicy;
import io.nats.client.api.ConsumerConfiguration;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import sun.misc.Signal;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Appends eviction events to a file: one JSON line each, each event once.
 *
 * <p>java -jar consumer.jar FILE (SUBLET_NATS_URL, SUBLET_NAMESPACE, SUBLET_DURABLE: see ../README.md)
 */
public final class Consumer {
    private static final String STREAM = "SUBLET_EVENTS";
    private static final String DURABLE = setting("SUBLET_DURABLE", "example-java");
    private static final int CONSUMER_NOT_FOUND = 10014;
    private static final Pattern ID = Pattern.compile("[0-9a-f-]{36}/[a-z]+/[0-9]+");
    private static final Pattern TYPE = Pattern.compile("[a-z0-9.]+");
    private static final Pattern LINE = Pattern.compile("^\\{\"id\":\"([^\"]+)\",\"node\":\"([^\"]+)\"");

    private final FileOutputStream log;
    /** By node and id: any node may write another one's id, but each publishes on subjects of its own. */
    private final Set<String> seen = new HashSet<>();

    /** Opens the file and reads the ids in it. A line that a crash cut short is removed: it was not acknowledged. */
    private Consumer(Path path) throws IOException {
        log = new FileOutputStream(path.toFile(), true);
        String content = Files.readString(path);
        String whole = content.substring(0, content.lastIndexOf('\n') + 1);
        log.getChannel().truncate(whole.getBytes(UTF_8).length);
        whole.lines().map(LINE::matcher).filter(Matcher::find).forEach(line -> seen.add(line.group(2) + "/" + line.group(1)));
    }

    /** Does the work of one message, unless it was done before; false for what is no event. */
    private boolean record(Message message) {
        String id = message.hasHeaders() ? message.getHeaders().getFirst("ce-id") : null;
        String type = message.hasHeaders() ? message.getHeaders().getFirst("ce-type") : null;
        if (id == null || type == null || !ID.matcher(id).matches() || !TYPE.matcher(type).matches()) {
            System.err.println("not an event, put aside: " + message.getSubject());
            return false;
        }
        String node = message.getSubject().substring(message.getSubject().lastIndexOf('.') + 1);
        String key = node + "/" + id;
        if (!seen.contains(key)) {
            String body = new String(message.getData(), UTF_8).replace('\n', ' ');
            String line = "{\"id\":\"%s\",\"node\":\"%s\",\"type\":\"%s\",\"data\":%s}\n".formatted(id, node, type, body);
            try {
                log.write(line.getBytes(UTF_8));
                log.getFD().sync();
            } catch (IOException error) {
                throw new UncheckedIOException(error); // ends the program: the next start repairs the file
            }
            seen.add(key);
        }
        return true;
    }

    /** Takes the durable consumer as it is, and creates it where there is none. */
    private static JetStreamSubscription durable(Connection connection) throws IOException, JetStreamApiException {
        JetStreamManagement management = connection.jetStreamManagement();
        try {
            management.getConsumerInfo(STREAM, DURABLE);
        } catch (JetStreamApiException error) {
            if (error.getApiErrorCode() != CONSUMER_NOT_FOUND) {
                throw error;
            }
            String namespace = setting("SUBLET_NAMESPACE", "*").replace('.', '_');
            management.createConsumer(STREAM, ConsumerConfiguration.builder()
                .durable(DURABLE)
                .filterSubject("sublet.cluster.v1.event.eviction.*." + namespace + ".*")
                .ackPolicy(AckPolicy.Explicit)
                .ackWait(Duration.ofSeconds(30))
                .maxAckPending(1) // one at a time keeps the order over a crash
                .maxDeliver(-1)   // none is given up
                .build());
        }
        return connection.jetStream().subscribe(null, PullSubscribeOptions.bind(STREAM, DURABLE));
    }

    /** The durable's messages, one after the other: first the work, then the acknowledgement. */
    private void follow(Connection connection) throws IOException, JetStreamApiException {
        JetStreamSubscription durable = durable(connection);
        try {
            while (true) {
                List<Message> messages = durable.fetch(1, Duration.ofSeconds(5));
                if (messages.isEmpty()) {
                    durable.getConsumerInfo(); // nothing new, or is the durable gone? Then this says so.
                }
                for (Message message : messages) {
                    if (record(message)) {
                        message.ack();
                    } else {
                        message.term();
                    }
                }
            }
        } finally {
            durable.unsubscribe();
        }
    }

    public static void main(String[] arguments) throws Exception {
        Consumer consumer = new Consumer(Path.of(arguments[0]));
        // Nothing to tidy up: what is not acknowledged by then comes again, and is known by its id.
        for (String name : new String[] {"TERM", "INT"}) {
            Signal.handle(new Signal(name), signal -> Runtime.getRuntime().halt(0));
        }
        Options options = Options.builder()
            .server(setting("SUBLET_NATS_URL", "nats://127.0.0.1:4222"))
            .connectionName(DURABLE)
            .maxReconnects(-1)
            .build();
        while (true) { // a connection whose login is turned away is closed for good
            try (Connection connection = Nats.connectReconnectOnConnect(options)) {
                while (connection.getStatus() != Connection.Status.CLOSED) {
                    try {
                        consumer.follow(connection);
                    } catch (IOException | JetStreamApiException | IllegalStateException error) {
                        again(error);
                    }
                }
            } catch (IOException error) {
                again(error);
            }
        }
    }

    private static void again(Exception error) throws InterruptedException {
        System.err.println("again in a second: " + error);
        Thread.sleep(1_000);
    }

    private static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }
}
