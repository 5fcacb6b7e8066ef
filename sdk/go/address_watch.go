package catraca

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// addressSample is how many checks must have the same address before it looks like a mistake.
const addressSample = 100

// addressWatch notices when every check has the same client address, as behind a proxy that is
// not trusted: all clients then share one quota.
type addressWatch struct {
	differs atomic.Bool
	mutex   sync.Mutex
	first   string
	count   int
}

// see takes the address of a check, and reports whether it was the one that makes the sample full.
func (w *addressWatch) see(address string) bool {
	if w.differs.Load() {
		return false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.count > 0 && address != w.first {
		w.differs.Store(true)
		return false
	}
	w.first = address
	w.count++
	return w.count == addressSample
}

// warning is the warning about the addresses of all checks until now.
func (w *addressWatch) warning() []Warning {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.differs.Load() || w.count < addressSample {
		return nil
	}
	detail := fmt.Sprintf("the first %d checks all had the address %s: all clients share one counter; behind a proxy, use "+
		"ForwardedAddress with the addresses of the proxy", w.count, w.first)
	return []Warning{{Code: WarnSameAddress, Detail: detail}}
}
