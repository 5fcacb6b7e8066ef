package catraca

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"catraca-go/catracatest"
)

const (
	loadTimeout = 500 * time.Millisecond
	// lateMax is how much later than its deadline a call may end on an idle machine.
	lateMax = 250 * time.Millisecond
	// wakeups is how often a call waits for a core after its deadline: for the timer, the
	// transport and the caller.
	wakeups = 3
)

// loadCounts is what the callers saw that check without a pause.
type loadCounts struct {
	mode     FailMode
	served   atomic.Int64
	failed   atomic.Int64
	wrong    atomic.Int64
	slowest  atomic.Int64
	answered atomic.Int64
	// longestPause is the longest time that a goroutine waited for a core: other processes may
	// use them.
	longestPause atomic.Int64
	stop         chan struct{}
	group        sync.WaitGroup
}

func startLoad(client *Client, mode FailMode) *loadCounts {
	counts := &loadCounts{mode: mode, stop: make(chan struct{})}
	counts.group.Add(20)
	for range 16 {
		go counts.repeat(func() { counts.call(client) })
	}
	// One may run while the thread of another waits for its core.
	for range 4 {
		go counts.repeat(counts.measurePause)
	}
	return counts
}

func (l *loadCounts) repeat(step func()) {
	defer l.group.Done()
	for {
		select {
		case <-l.stop:
			return
		default:
			step()
		}
	}
}

func (l *loadCounts) call(client *Client) {
	begun := time.Now()
	decision, err := client.Check(context.Background(), "attempts", ip("198.51.100.1"))
	keepLongest(&l.slowest, time.Since(begun))
	switch {
	case err == nil && !decision.Degraded:
		l.served.Add(1)
		l.answered.Store(time.Now().UnixNano())
	case isAnswerOf(l.mode, decision, err):
		l.failed.Add(1)
		// A refused connection fails at once; without a pause this loop would only dial.
		time.Sleep(time.Millisecond)
	default:
		l.wrong.Add(1)
	}
}

// isAnswerOf says whether this is what the fail mode makes of a check without an answer.
func isAnswerOf(mode FailMode, decision Decision, err error) bool {
	if mode == FailError {
		return errors.Is(err, ErrUnavailable) && !decision.Allowed
	}
	byMode := decision.Degraded && decision.Reason == ReasonUnavailable
	return err == nil && byMode && decision.Allowed == (mode == FailOpen)
}

func (l *loadCounts) measurePause() {
	const step = time.Millisecond
	begun := time.Now()
	time.Sleep(step)
	keepLongest(&l.longestPause, time.Since(begun)-step)
}

// keepLongest keeps the longest time, also if another goroutine stores its own in between.
func keepLongest(longest *atomic.Int64, took time.Duration) {
	for known := longest.Load(); int64(took) > known; known = longest.Load() {
		if longest.CompareAndSwap(known, int64(took)) {
			return
		}
	}
}

// slack is how late something may be because of this machine.
func (l *loadCounts) slack() time.Duration {
	return lateMax + wakeups*time.Duration(l.longestPause.Load())
}

// covers: 002-34, X-15
func TestAServerThatIsKilledUnderLoadAndStartedAgain(t *testing.T) {
	for _, mode := range []FailMode{FailError, FailOpen, FailClosed} {
		t.Run(mode.String(), func(t *testing.T) {
			server := startServer(t)
			client := newTestClient(t, server.URL, WithTimeout(loadTimeout), WithFailMode(mode), WithBlockCache(0, 0))
			counts := startLoad(client, mode)
			for range 2 {
				killAndRestart(t, server, counts)
			}
			close(counts.stop)
			counts.group.Wait()
			slowest := time.Duration(counts.slowest.Load())
			t.Logf("%d decided, %d by the fail mode; the longest call took %s, the longest pause %s",
				counts.served.Load(), counts.failed.Load(), slowest, time.Duration(counts.longestPause.Load()))
			expect(t, counts.wrong.Load() == 0, "errors or decisions against the fail mode", counts.wrong.Load())
			expect(t, slowest < loadTimeout+counts.slack(), "a call outlived its deadline", slowest)
		})
	}
}

// killAndRestart expects the answers of the fail mode while the server is down, and its decisions
// within a second after it listens again.
func killAndRestart(t *testing.T, server *catracatest.Server, counts *loadCounts) {
	t.Helper()
	served := counts.served.Load()
	waitUntil(t, "decisions", func() bool { return counts.served.Load() > served+200 })
	server.Kill()
	failed := counts.failed.Load()
	waitUntil(t, "answers of the fail mode", func() bool { return counts.failed.Load() > failed+100 })
	server.Restart()
	restarted := time.Now().UnixNano()
	waitUntil(t, "recovery", func() bool { return counts.answered.Load() > restarted })
	recovery := time.Duration(counts.answered.Load() - restarted)
	t.Logf("the first decision came at most %s after the server listened", recovery)
	expect(t, recovery < time.Second+counts.slack(), "recovery", recovery)
}

// waitUntil polls for something that other goroutines do, and fails after 30 s.
func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
