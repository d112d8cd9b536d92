package watchdog

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A look is one second after the former. Its letter is: r, the lease was renewed; -, it was not;
// n, there is none; h, no one holds it; e, it could not be read; t, another replica took it without
// renewing it yet.
func TestLeaderIsLostAndRecovers(t *testing.T) {
	const after = 30 * time.Second
	repeat := func(letter string, n int) (all string) {
		for range n {
			all += letter
		}
		return all
	}
	for name, tc := range map[string]struct {
		looks           string
		lost, recovered bool
	}{
		"leads":                           {repeat("r", 100), false, true},
		"renews every second look":        {repeat("r-", 50), false, true},
		"leads for less than a minute":    {repeat("r", 55), false, false},
		"has just been looked at":         {"n", false, false},
		"was not renewed for 29 s":        {"r" + repeat("-", 29), false, false},
		"was not renewed for 30 s":        {"rr" + repeat("-", 30), true, false},
		"was never seen renewed":          {"r" + repeat("-", 30), true, false},
		"has no lease":                    {repeat("n", 31), true, false},
		"gave the lease up":               {"rr" + repeat("h", 30), true, false},
		"a standby takes over after 15 s": {repeat("r", 70) + repeat("-", 15) + "t" + repeat("r", 5), false, true},
		"a standby takes over late":       {repeat("r", 70) + repeat("-", 20) + "t" + repeat("r", 5), false, false},
		"is back for less than a minute":  {repeat("n", 40) + repeat("r", 59), false, false},
		"is back for a minute":            {repeat("n", 40) + repeat("r", 61), false, true},
		"is back with a gap": {repeat("n", 40) + repeat("r", 30) + repeat("-", 20) + repeat("r", 40),
			false, false},
		"could not be read":                   {"rr" + repeat("e", 40), false, false},
		"could not be read, and is lost then": {"rr" + repeat("e", 40) + repeat("-", 31), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var l leader
			now := time.Unix(1e9, 0)
			renewed, holder := metav1.NewMicroTime(now), "a"
			for _, letter := range tc.looks {
				now = now.Add(time.Second)
				lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}}
				switch letter {
				case 'r':
					renewed = metav1.NewMicroTime(now)
				case 't':
					holder = "b"
				case 'n':
					lease = nil
				case 'h':
					lease.Spec.HolderIdentity = new("")
				case 'e':
					l.unknown(now)
					continue
				}
				l.observe(lease, now)
			}
			if got := l.lost(after, now); got != tc.lost {
				t.Errorf("lost %t, want %t", got, tc.lost)
			}
			if got := l.recovered(time.Minute, now); got != tc.recovered {
				t.Errorf("recovered %t, want %t", got, tc.recovered)
			}
		})
	}
}
