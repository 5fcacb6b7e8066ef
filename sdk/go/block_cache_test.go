package catraca

import (
	"context"
	"fmt"
	"testing"
	"time"

	"catraca-go/catracatest"
)

// blockSubject uses up the quota of a subject, which starts its block.
func blockSubject(t *testing.T, client *Client, subject Subject) {
	t.Helper()
	for range 4 {
		mustCheck(t, client, "login", subject)
	}
}

// covers: X-18, B-02
func TestABlockIsCachedAndAReleaseIsSeenAfterTheStaleness(t *testing.T) {
	server := startServer(t)
	clock := newManualClock()
	client := newTestClient(t, server.URL, withClock(clock))
	operator := NewLimiter(newTestClient(t, server.URL), "login", "login")
	blockSubject(t, client, ip("198.51.100.1"))

	clock.advance(2 * time.Second)
	cached := mustCheck(t, client, "login", ip("198.51.100.1"))
	expect(t, !cached.Allowed && cached.Cached && cached.Reason == ReasonBlocked, "cached", cached)
	expect(t, cached.RetryAfter == 10*time.Minute-2*time.Second, "age of the block", cached.RetryAfter)
	other := mustCheck(t, client, "login", ip("198.51.100.2"))
	expect(t, other.Allowed && !other.Cached, "another subject", other)
	otherGate := mustCheck(t, client, "wide", ip("198.51.100.1"))
	expect(t, otherGate.Allowed, "another gate", otherGate)

	if err := operator.Reset(context.Background(), "ip:198.51.100.1"); err != nil {
		t.Fatal(err)
	}
	clock.advance(3*time.Second - time.Microsecond)
	stale := mustCheck(t, client, "login", ip("198.51.100.1"))
	expect(t, !stale.Allowed && stale.Cached, "before the staleness has passed", stale)
	clock.advance(time.Microsecond)
	released := mustCheck(t, client, "login", ip("198.51.100.1"))
	expect(t, released.Allowed && !released.Cached, "after the staleness", released)
}

func TestACachedBlockDecidesWhileTheServerIsDown(t *testing.T) {
	server, client := startWithClient(t, WithFailMode(FailOpen))
	blockSubject(t, client, ip("198.51.100.1"))
	server.Kill()
	decision := mustCheck(t, client, "login", ip("198.51.100.1"))
	expect(t, !decision.Allowed && decision.Cached, "cached", decision)
}

func TestTheBlockCacheCanBeTurnedOff(t *testing.T) {
	_, client := startWithClient(t, WithBlockCache(0, 10))
	blockSubject(t, client, ip("198.51.100.1"))
	decision := mustCheck(t, client, "login", ip("198.51.100.1"))
	expect(t, !decision.Allowed && !decision.Cached, "cached", decision)
}

func TestOnlyBlocksAreCached(t *testing.T) {
	server := catracatest.Start(t, "[policy.plain]\nby = [\"ip\"]\nwindow = \"1 per 1h\"\n")
	client := newTestClient(t, server.URL)
	mustCheck(t, client, "plain", ip("198.51.100.1"))
	mustCheck(t, client, "plain", ip("198.51.100.1"))
	decision := mustCheck(t, client, "plain", ip("198.51.100.1"))
	expect(t, decision.Reason == ReasonOverLimit && !decision.Cached, "a denial without a block", decision)
}

func TestTheBlockCacheIsBoundedAndForgets(t *testing.T) {
	const most = 100
	cache := newBlockCache(5*time.Second, most)
	now := newManualClock().read()
	forever := Decision{Reason: ReasonBlocked}
	for number := range 3 * most {
		cache.learn(fmt.Sprint(number), forever, now)
		expect(t, len(cache.entries) <= most && cache.order.Len() == len(cache.entries), "entries", len(cache.entries))
	}
	_, oldest := cache.find(fmt.Sprint(2*most-1), now)
	_, newest := cache.find(fmt.Sprint(3*most-1), now)
	expect(t, !oldest && newest, "the oldest entries are dropped", len(cache.entries))
	cache.learn("later", forever, now.Add(5*time.Second))
	expect(t, len(cache.entries) == 1, "expired entries", len(cache.entries))

	cache.learn("short", Decision{Reason: ReasonBlocked, RetryAfter: time.Second}, now)
	_, before := cache.find("short", now.Add(time.Second-1))
	_, after := cache.find("short", now.Add(time.Second))
	expect(t, before && !after, "a block that ends before the staleness", before)
	for _, other := range []Decision{{Allowed: true}, {Reason: ReasonOverLimit}, {Reason: ReasonBlocked, Degraded: true}} {
		cache.learn("other", other, now)
		_, found := cache.find("other", now)
		expect(t, !found, "cached", other)
	}
}
