package health

import (
	"strings"
	"testing"
	"time"
)

func TestAnArbiterThatDoesNotDecideIsAFinding(t *testing.T) {
	lease := func(change func(*Lease)) *Lease {
		l := &Lease{Exists: true, Holder: "a-1", Since: ago(time.Hour), Renewed: ago(time.Second), Duration: 6 * time.Second}
		change(l)
		return l
	}
	for name, c := range map[string]struct {
		arbiter Arbiter
		want    string
	}{
		"it decides":            {Arbiter{Trusted: true, Lease: lease(func(*Lease) {})}, ""},
		"the lease is not read": {Arbiter{Trusted: true}, ""},
		"clocks that differ": {Arbiter{Trusted: true, Lease: lease(func(l *Lease) {
			l.Renewed = ago(36 * time.Second)
		})}, ""},
		"not trusted": {Arbiter{Lease: lease(func(*Lease) {})},
			"bindings are not checked: API servers do not trust the webhook yet"},
		"no lease":  {Arbiter{Trusted: true, Lease: &Lease{}}, "bindings are not checked: no replica has ever led"},
		"no holder": {Arbiter{Trusted: true, Lease: &Lease{Exists: true}}, "bindings are not checked: no replica leads"},
		"a lost leader": {Arbiter{Trusted: true, Lease: lease(func(l *Lease) { l.Renewed = ago(time.Minute) })},
			"bindings are not checked: a-1 last renewed the lease at 2026-03-01T11:59:00Z"},
	} {
		c.arbiter.Name, c.arbiter.Namespace = "arbiter", "ns"
		found := c.arbiter.Findings(now)
		if c.want == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Code != ArbiterUndecided || found[0].Text != c.want || found[0].Hint == "" ||
			!strings.HasPrefix(found[0].String(), "webhook arbiter in namespace ns: ") {
			t.Errorf("%s: %+v, expected %q", name, found, c.want)
		}
	}
}
