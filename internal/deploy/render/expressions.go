package render

import "fmt"

// apiServers selects the API servers by the job that the Prometheus operator and Prometheus's
// examples give them.
const apiServers = `job=~"apiserver|kubernetes-apiservers"`

// of returns this scheduler's series for a metric, with further matchers: `result="error"`.
func (m monitored) of(metric string, matchers ...string) string {
	text := fmt.Sprintf("%s{job=%q,namespace=%q", metric, m.objectName(), m.Namespace)
	for _, matcher := range matchers {
		text += "," + matcher
	}
	return text + "}"
}

// leader is 1 for the replica that leads, and 0 for the others. Its label name is "kube-scheduler",
// not the lease's name (cmd/kube-scheduler/app/options/options.go, makeLeaderElectionConfig).
func (m monitored) leader() string { return m.of("leader_election_master_status") }

// ofLeader returns the leading replica's series for a metric. Others count pending pods too, and do
// not schedule them.
func (m monitored) ofLeader(metric string, matchers ...string) string {
	return fmt.Sprintf("(%s and on (instance) (%s == 1))", m.of(metric, matchers...), m.leader())
}

// pending is the number of pods that wait for this scheduler. Gated pods wait for something else.
func (m monitored) pending() string {
	return fmt.Sprintf("sum(%s)", m.ofLeader("scheduler_pending_pods", `queue!="gated"`))
}

// rate returns how often this scheduler's counter counts in a second, by labels.
func (m monitored) rate(metric, by string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[5m]))", by, m.of(metric))
}

// quantile returns a quantile for this scheduler's histogram by labels; by may be empty.
func (m monitored) quantile(q, histogram, by string) string {
	if by != "" {
		by = ", " + by
	}
	return fmt.Sprintf("histogram_quantile(%s, %s)", q, m.rate(histogram+"_bucket", "le"+by))
}

// releases returns one series for each minor release of programs, which is in the label release.
func releases(buildInfo string) string {
	return fmt.Sprintf(`count by (release) (label_replace(%s, "release", "$1", "git_version", "v([0-9]+[.][0-9]+).*"))`,
		buildInfo)
}
