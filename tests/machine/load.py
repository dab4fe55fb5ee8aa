"""Load on a server before a power cut, and the audit of its data afterwards."""
import http.client
import random
import threading
import time

from server import Client, timestamp

WRITERS, CHANGERS = 6, 3
ENTRIES_MAX = 40
# The greatest age of late points.
DAYS_BACK_NS = 10 * 86_400_000_000_000
STEP_NS = 1_000_000
PAGE = 10_000
NO_ANSWER = (OSError, http.client.HTTPException)


class CatalogObject:
    """A created object of the catalog. Unacknowledged requests may or may not have taken effect."""

    def __init__(self, path, answer_path):
        self.path, self.answer_path, self.exists = path, answer_path, True


class Ledger:
    """Requests acknowledged before the power cut, and the state of the others."""

    def __init__(self):
        self.lock = threading.Lock()
        self.next_number = 1
        self.points = 0
        self.changes = 0
        # Requests of this round: bucket, first number, count, and whether they were acknowledged.
        self.sent = []
        # Objects of the catalog by path, and those that this round changed.
        self.things = {}
        self.touched = set()
        # Answers received after the power cut: according to the file system, their data was on the disk.
        self.late, self.late_lost = 0, 0
        # Number of points in each bucket.
        self.counts = {}

    def reserve_numbers(self, count):
        with self.lock:
            first = self.next_number
            self.next_number += count
            return first


class Round:
    """Clients that send requests until the power cut."""

    def __init__(self, address, scene, ledger, seed):
        self.address, self.scene, self.ledger, self.seed = address, scene, ledger, seed
        self.cut = threading.Event()
        self.progress = threading.Condition()
        self.answered = 0
        self.failures = []
        works = [self.write] * WRITERS + [self.change] * CHANGERS
        self.threads = [threading.Thread(target=self.run_client, args=(work, seed * 100 + nth))
                        for nth, work in enumerate(works)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def wait_for(self, answers, seconds):
        with self.progress:
            self.progress.wait_for(lambda: self.answered >= answers or self.failures, seconds)

    def join(self):
        for thread in self.threads:
            thread.join()
        assert not self.failures, self.failures[0]

    def run_client(self, work, seed):
        client = Client(self.address, self.scene.account.key)
        try:
            work(client, random.Random(seed))
        except NO_ANSWER:
            pass
        except Exception as error:  # noqa: BLE001: reported by `join`
            self.failures.append(error)
        finally:
            client.close()

    def count(self):
        with self.progress:
            self.answered += 1
            self.progress.notify_all()

    def answer(self, client, method, path, body, headers=None):
        """The answer, and whether it came before the power cut; `None` if the server refused to store the data."""
        answer = client.send(method, path, body, headers)
        acknowledged = not self.cut.is_set()
        if answer.status == 503:
            return None, False
        self.count()
        return answer, acknowledged

    def write(self, client, chance):
        while True:
            count = chance.randint(2, ENTRIES_MAX) if chance.random() < 0.5 else 1
            bucket = chance.randrange(len(self.scene.buckets))
            first = self.ledger.reserve_numbers(count)
            entries = [self.scene.point(bucket, number, chance) for number in range(first, first + count)]
            sent = {"bucket": bucket, "first": first, "count": count, "acknowledged": False, "late": False}
            with self.ledger.lock:
                self.ledger.sent.append(sent)
            place = self.scene.buckets[bucket]["id"]
            if count == 1:
                answer, acknowledged = self.answer(client, "POST", "/api/data", {"bucketId": place, **entries[0]})
            else:
                body = {"bucketId": place, "dataPoints": entries}
                answer, acknowledged = self.answer(client, "POST", "/api/data/batch", body)
            if answer is None:
                if self.cut.is_set():
                    return
                continue
            answer.expect(201)
            with self.ledger.lock:
                sent["acknowledged"], sent["late"] = acknowledged, not acknowledged
                self.ledger.points += count if acknowledged else 0

    def change(self, client, chance):
        while not self.cut.is_set():
            made = self.create(client, chance)
            if made is None:
                continue
            if chance.random() < 0.7:
                self.delete(client, made)

    def create(self, client, chance):
        place = self.scene.buckets[chance.randrange(len(self.scene.buckets))]
        name = f"made {chance.randrange(1 << 60)}"
        path, body, member, headers = chance.choice([
            (f"/api/buckets/{place['id']}/sources", {"name": name, "schema": {"number": {"type": "number"}}},
             "dataSource", None),
            ("/api/organization/keys", {"name": name, "type": "integration"}, "apiKey", self.scene.account.token),
            ("/api/alerts", {"bucketId": place["id"], "dataSourceId": place["sources"][0], "name": name,
                             "naturalLanguageQuery": "number above 5"}, "alertRule", None),
        ])
        answer, acknowledged = self.answer(client, "POST", path, body, headers)
        if answer is None:
            return None
        thing = CatalogObject(f"{path}/{answer.expect(201)[member]['_id']}", path)
        self.record(thing, True, acknowledged)
        return thing

    def delete(self, client, thing):
        headers = self.scene.account.token if thing.answer_path.endswith("keys") else None
        with self.ledger.lock:
            thing.exists = None
        answer, acknowledged = self.answer(client, "DELETE", thing.path, None, headers)
        if answer is not None:
            answer.expect(200)
            self.record(thing, False, acknowledged)

    def record(self, thing, exists, acknowledged):
        with self.ledger.lock:
            self.ledger.things[thing.path] = thing
            self.ledger.touched.add(thing.path)
            self.ledger.changes += acknowledged
            thing.exists = exists if acknowledged else None
            thing.late = None if acknowledged else exists


class Scene:
    """An account with buckets and sources."""

    def __init__(self, address, account):
        self.account = account
        self.base_ns = (int(time.time()) - 86_400) * 1_000_000_000
        client = Client(address, account.key)
        self.buckets = []
        for nth in range(3):
            made = client.send("POST", "/api/buckets", {"name": f"bucket {nth}"}).expect(201)["bucket"]["_id"]
            schema = {"number": {"type": "number"}}
            sources = [
                client.send("POST", f"/api/buckets/{made}/sources", {"name": f"source {source}", "schema": schema})
                for source in range(3)]
            self.buckets.append({"id": made, "sources": [it.expect(201)["dataSource"]["_id"] for it in sources]})
        client.close()

    def point(self, bucket, number, chance):
        """A point whose value is its number, which determines its time: every third is days older than the others."""
        at_ns = self.base_ns + number * STEP_NS - (DAYS_BACK_NS if number % 3 == 0 else 0)
        return {"dataSourceId": self.buckets[bucket]["sources"][number % 3], "timestamp": timestamp(at_ns),
                "values": {"number": number}, "metadata": {"ballast": "x" * chance.randrange(400)}}

    def rows(self, client, bucket, first=None, last=None):
        """The numbers of the points in a bucket; with bounds, of those sent between them."""
        windows = [{}]
        if first is not None:
            windows = [
                {"filters": {"startTime": timestamp(self.base_ns + first * STEP_NS - back),
                             "endTime": timestamp(self.base_ns + last * STEP_NS + STEP_NS // 2 - back)}}
                for back in (0, DAYS_BACK_NS)]
        found = []
        for window in windows:
            body = {"bucketId": self.buckets[bucket]["id"], "limit": PAGE, "downsampling": False, **window}
            while True:
                answer = client.send("POST", "/api/data/query", body).expect(200)
                found += [row["values"]["number"] for row in answer["data"]]
                if not answer["metadata"]["hasMore"]:
                    break
                body["cursor"] = answer["metadata"]["nextCursor"]
        return found

    def count(self, client, bucket):
        """Counts the points of a bucket by a query grouped by hour."""
        body = {"bucketId": self.buckets[bucket]["id"], "aggregation": "count", "groupBy": "hour",
                "mergeSources": True, "limit": PAGE}
        answer = client.send("POST", "/api/data/query", body).expect(200)
        assert not answer["metadata"]["hasMore"], "few hours"
        return sum(row["values"]["number"] for row in answer["data"])


def audit(scene, client, ledger, chance):
    """Every acknowledged point is present once; other requests are present completely or not at all."""
    for bucket in range(len(scene.buckets)):
        audit_points(scene, client, ledger, bucket)
    others = [path for path in ledger.things if path not in ledger.touched]
    for path in list(ledger.touched) + chance.sample(others, min(20, len(others))):
        audit_object(scene, client, ledger, ledger.things[path])
    ledger.sent, ledger.touched = [], set()


def audit_points(scene, client, ledger, bucket):
    sent = [it for it in ledger.sent if it["bucket"] == bucket]
    stored = ledger.counts.get(bucket, 0)
    if sent:
        bounds = (min(it["first"] for it in sent), max(it["first"] + it["count"] - 1 for it in sent))
        rows = scene.rows(client, bucket, *bounds)
        there = set(rows)
        assert len(there) == len(rows), "a point is present twice"
        for it in sent:
            numbers = range(it["first"], it["first"] + it["count"])
            found = sum(number in there for number in numbers)
            assert found in (0, it["count"]), f"{found} points of {it}"
            assert found or not it["acknowledged"], f"{it} was acknowledged and is missing"
            ledger.late += it["late"]
            ledger.late_lost += it["late"] and not found
            stored += found
            there.difference_update(numbers)
        assert not there, f"points that were not sent: {sorted(there)[:5]}"
    counted = scene.count(client, bucket)
    assert counted == stored, f"{counted} points in bucket {bucket}, not {stored}"
    ledger.counts[bucket] = stored


def audit_object(scene, client, ledger, thing):
    is_key = thing.answer_path.endswith("keys")
    if is_key:
        # Keys are only listed.
        exists = thing.path.rsplit("/", 1)[1] in scene.keys
    else:
        answer = client.send("GET", thing.path)
        assert answer.status in (200, 404), f"{answer.request}: {answer.status} {answer.body[:200]!r}"
        exists = answer.status == 200
    assert thing.exists in (None, exists), f"{thing.path} was acknowledged to be {thing.exists}, and is {exists}"
    late = getattr(thing, "late", None)
    if late is not None:
        ledger.late += 1
        ledger.late_lost += late != exists
        thing.late = None
    thing.exists = exists
