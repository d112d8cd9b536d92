package health

import "time"

// Arbiter is the state of a registered arbiter, which refuses bindings for which a node has no room
// left.
type Arbiter struct {
	// Name of the webhook configuration. Namespace is the one of the replicas.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Trusted is set if API servers have the certificate authority of the webhook.
	Trusted bool `json:"trusted"`
	// Lease of the replica that decides. It is nil if it could not be read.
	Lease *Lease `json:"lease,omitempty"`
}

// Findings returns why bindings are not checked at a time, if it is known.
func (a *Arbiter) Findings(now time.Time) []Finding {
	const logs = "see the pods of Deployment pmk-sched-admission and their logs"
	webhook := subject{Webhook, a.Name, a.Namespace}
	switch l := a.Lease; {
	case !a.Trusted:
		return []Finding{webhook.finding(ArbiterUndecided,
			"see the logs of Deployment pmk-sched-controller, which writes the certificate authority",
			"bindings are not checked: API servers do not trust the webhook yet")}
	case l == nil:
		return nil
	case !l.Exists:
		return []Finding{webhook.finding(ArbiterUndecided, logs, "bindings are not checked: no replica has ever led")}
	case l.Holder == "":
		return []Finding{webhook.finding(ArbiterUndecided, logs, "bindings are not checked: no replica leads")}
	case now.Sub(l.Renewed) > l.Duration+clockSkew:
		return []Finding{webhook.finding(ArbiterUndecided, logs,
			"bindings are not checked: %s last renewed the lease at %s", l.Holder, stamp(l.Renewed))}
	}
	return nil
}
