//go:build linux && cases

package extender_test

// listed returns how many lists of pods the API server has answered.
func (l *line) listed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists
}

// cut closes all connections and lets no new one be made.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, c := range l.open {
		_ = c.Close() // it may be closed already
	}
	l.open = nil
}

func (l *line) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}
