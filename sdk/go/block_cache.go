package catraca

import (
	"container/list"
	"sync"
	"time"
)

// blockCache remembers which subjects are blocked, so that a blocked caller costs no call. An entry
// lives for at most the staleness, and never longer than its block.
type blockCache struct {
	staleness time.Duration
	max       int

	mutex   sync.Mutex
	entries map[string]*list.Element
	// order has the oldest entry first. All entries have the same staleness, so the first ends first,
	// except for blocks that end sooner by themselves.
	order *list.List
}

type cachedBlock struct {
	key      string
	decision Decision
	learned  time.Time
	until    time.Time
}

func newBlockCache(staleness time.Duration, entries int) *blockCache {
	return &blockCache{
		staleness: staleness,
		max:       entries,
		entries:   make(map[string]*list.Element),
		order:     list.New(),
	}
}

// find returns the denial of a block that is still known, with the time that is left of it.
func (b *blockCache) find(key string, now time.Time) (Decision, bool) {
	if b.staleness == 0 {
		return Decision{}, false
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	element, found := b.entries[key]
	if !found {
		return Decision{}, false
	}
	block := element.Value.(cachedBlock)
	if !now.Before(block.until) {
		b.remove(element)
		return Decision{}, false
	}
	return block.aged(now.Sub(block.learned)), true
}

// learn remembers a decision that reports a block. Other decisions are not remembered.
func (b *blockCache) learn(key string, decision Decision, asked time.Time) {
	if b.staleness == 0 || b.max == 0 || !reportsBlock(decision) {
		return
	}
	until := asked.Add(b.staleness)
	if end := asked.Add(decision.RetryAfter); decision.RetryAfter > 0 && end.Before(until) {
		until = end
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if element, found := b.entries[key]; found {
		b.remove(element)
	}
	for first := b.order.Front(); first != nil; first = b.order.Front() {
		if b.order.Len() < b.max && asked.Before(first.Value.(cachedBlock).until) {
			break
		}
		b.remove(first)
	}
	b.entries[key] = b.order.PushBack(cachedBlock{key, decision, asked, until})
}

// forget drops a block that this client has ended.
func (b *blockCache) forget(key string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if element, found := b.entries[key]; found {
		b.remove(element)
	}
}

func (b *blockCache) remove(element *list.Element) {
	delete(b.entries, element.Value.(cachedBlock).key)
	b.order.Remove(element)
}

// reportsBlock reports whether the next check of the same subject is denied in any case. A degraded
// decision is not remembered: it was made without the state of the store.
func reportsBlock(decision Decision) bool {
	if decision.Allowed || decision.Degraded {
		return false
	}
	return decision.Reason == ReasonBlocked || decision.Reason == ReasonBlocklisted ||
		!decision.BlockedUntil.IsZero()
}

// aged is the decision after this time: the block decides, and its waits are shorter.
func (block cachedBlock) aged(age time.Duration) Decision {
	decision := block.decision
	decision.Cached = true
	if decision.Reason == ReasonOverLimit {
		decision.Reason = ReasonBlocked
	}
	decision.RetryAfter = max(decision.RetryAfter-age, 0)
	decision.ResetAfter = max(decision.ResetAfter-age, 0)
	return decision
}
