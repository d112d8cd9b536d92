package extender

import (
	"net"
	"sync"
	"time"
)

// crowd bounds the number of connections, or requests that wait for their client, in total and for
// each client address. An additional member ends the oldest one from its address, or from the
// address with the most members. A quick client gets through while other clients keep their
// connections and bodies open, even from the same address. Connections that have served a request
// end last.
type crowd struct {
	total, perAddress int

	mu      sync.Mutex
	members map[interface{}]member
	count   map[string]int // members by address
}

type member struct {
	address string
	since   time.Time
	served  bool
	end     func()
}

func newCrowd(total, perAddress int) *crowd {
	return &crowd{total: total, perAddress: perAddress, members: map[interface{}]member{}, count: map[string]int{}}
}

// enter adds a member that is identified by key. end is called at most once, before leave returns.
// The member leaves with it; end must not block.
func (c *crowd) enter(key interface{}, remote string, since time.Time, end func()) {
	address, _, err := net.SplitHostPort(remote)
	if err != nil {
		address = remote
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.count[address] >= c.perAddress:
		c.endOldest(func(m member) bool { return m.address == address })
	case len(c.members) >= c.total:
		most := address
		for other, n := range c.count {
			if n > c.count[most] {
				most = other
			}
		}
		c.endOldest(func(m member) bool { return c.count[m.address] == c.count[most] })
	}
	c.members[key] = member{address: address, since: since, end: end}
	c.count[address]++
}

// endOldest ends the oldest member that matches, one that has served nothing if possible. The
// caller holds c.mu.
func (c *crowd) endOldest(matches func(member) bool) {
	var oldest interface{}
	for key, m := range c.members {
		if !matches(m) {
			continue
		}
		if o := c.members[oldest]; oldest == nil || o.served && !m.served ||
			o.served == m.served && m.since.Before(o.since) {
			oldest = key
		}
	}
	if oldest != nil {
		m := c.members[oldest]
		c.remove(oldest)
		m.end()
	}
}

// endOlder ends all members older than age.
func (c *crowd) endOlder(age time.Duration) {
	limit := time.Now().Add(-age)
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, m := range c.members {
		if m.since.Before(limit) {
			c.remove(key)
			m.end()
		}
	}
}

// renew changes a member's age. served is true if it has served a request since.
func (c *crowd) renew(key interface{}, since time.Time, served bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, found := c.members[key]; found {
		m.since, m.served = since, m.served || served
		c.members[key] = m
	}
}

// leave removes a member.
func (c *crowd) leave(key interface{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
}

func (c *crowd) remove(key interface{}) {
	m, found := c.members[key]
	if !found {
		return
	}
	delete(c.members, key)
	if c.count[m.address]--; c.count[m.address] == 0 {
		delete(c.count, m.address)
	}
}
