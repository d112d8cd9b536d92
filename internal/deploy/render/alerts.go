package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// alert is one alerting rule.
type alert struct {
	name, severity       string
	pending              string // how long the expression must hold until the alert fires
	expression           string
	summary, description string
	// certificate is set if the alert is about client certificates, and route if it is about a route.
	certificate, route bool
}

// alerts do not depend on which replica leads.
func (m monitored) alerts() []alert {
	return []alert{
		{
			name: "SchedulerHasNoLeader", severity: "critical", pending: "2m",
			expression: fmt.Sprintf("absent(%s == 1)", m.leader()),
			summary:    "No replica of scheduler " + m.Name + " leads: its pods stay pending.",
			description: fmt.Sprintf(
				"`pmk-sched -n %s logs --name %s` shows why; a target that Prometheus cannot scrape looks the same.", m.Namespace,
				m.Name),
		},
		{
			name: "SchedulerRouteSuspended", severity: "critical", pending: "0s", route: true,
			expression: fmt.Sprintf("max(pmk_sched_route_suspended{scheduler=%q}) == 1", m.Name),
			summary:    "New pods are not routed to scheduler " + m.Name + ": no replica of it led.",
			description: fmt.Sprintf("`pmk-sched -n %s status %s` shows why; the route is resumed when one has led for a minute.",
				m.Namespace, m.Name),
		},
		{
			name: "SchedulerRouteUnguarded", severity: "warning", pending: "15m", route: true,
			expression: fmt.Sprintf("absent(pmk_sched_route_suspended{scheduler=%q})", m.Name),
			summary:    "Nothing ends the route to scheduler " + m.Name + " if no replica of it leads: its pods would wait.",
			description: "`pmk-sched controller render --image IMAGE --admission route` installs the controller that does; its " +
				"port 8080 has to be scraped.",
		},
		{
			name: "SchedulerPreemptionHeldBack", severity: "warning", pending: "0s",
			expression: fmt.Sprintf("sum(increase(%s[10m])) > 0", m.of("pmk_sched_otherschedulers_held_back_total")),
			summary: "A pod of scheduler " + m.Name + " has evicted pods of one owner again and again, and did not get their " +
				"room: another scheduler took it.",
			description: "The event PreemptionHeldBack of the pod names the owner; give the pods of both schedulers nodes of " +
				"their own, or install the arbiter.",
		},
		{
			name: "SchedulerArbiterUndecided", severity: "warning", pending: "5m",
			expression: `sum(rate(pmk_sched_arbiter_decisions_total{result=~"no_leader|forward_failed|error"}[5m])) > 0 or ` +
				`max(pmk_sched_arbiter_leading) == 0`,
			summary: "The arbiter does not decide about all bindings: two schedulers can bind pods to the same room.",
			description: "`kubectl -n NAMESPACE logs deployment/pmk-sched-admission` shows why, in the namespace of the " +
				"controller.",
		},
		{
			name: "SchedulerWebhookFailsOpen", severity: "warning", pending: "5m",
			expression: fmt.Sprintf(
				`sum by (name) (rate(apiserver_admission_webhook_fail_open_count{%s,name=~".*[.]pmk-sched[.]io"}[5m])) > 0`,
				apiServers),
			summary: "The API server does not reach the webhook {{ $labels.name }}, and goes on without it.",
			description: "`kubectl get deployment,endpoints -A -l app.kubernetes.io/name=pmk-sched-admission` shows whether it " +
				"runs.",
		},
		{
			name: "SchedulerPendingPodsGrow", severity: "warning", pending: "15m",
			expression: fmt.Sprintf("min_over_time(%[1]s[15m:1m]) > 0 and deriv(%[1]s[15m:1m]) > 0", m.pending()),
			summary: "The number of pods that wait for scheduler " + m.Name +
				" grows; it was at least {{ $value | humanize }} for 15 minutes.",
			description: "The events of the pods say why they do not fit; the dashboard counts them by plugin.",
		},
		{
			name: "SchedulerFails", severity: "warning", pending: "10m",
			expression: fmt.Sprintf("sum(rate(%s[5m])) > 0", m.of("scheduler_schedule_attempts_total", `result="error"`)),
			summary:    "Attempts of scheduler " + m.Name + " to schedule pods end with errors.",
			description: fmt.Sprintf(
				"`pmk-sched -n %s logs --name %s --since 15m` shows the errors: of the API server, of a plugin or of an extender.",
				m.Namespace, m.Name),
		},
		{
			// The scheduler renews its lease every 2 seconds, so that its requests exceed the limit; an
			// administrator with a certificate of a few hours makes fewer.
			name: "SchedulerCertificateExpiresSoon", severity: "warning", pending: "1h", certificate: true,
			expression: fmt.Sprintf(
				`sum(rate(apiserver_client_certificate_expiration_seconds_bucket{%s,le=~"604800([.]0)?"}[15m])) > 0.3`, apiServers),
			summary: "A client that uses the API server all the time has a certificate that expires within 7 days; it may " +
				"be scheduler " + m.Name + ".",
			description: fmt.Sprintf(
				"`pmk-sched -n %[1]s credentials show --name %[2]s` prints when its certificate expires, `pmk-sched -n %[1]s "+
					"credentials refresh --name %[2]s` renews it.", m.Namespace, m.Name),
		},
		{
			name: "SchedulerVersionSkew", severity: "warning", pending: "1h",
			expression: fmt.Sprintf("%s unless on (release) %s and on () (count(%s) > 0)",
				releases("kubernetes_build_info{"+apiServers+"}"), releases(m.of("kubernetes_build_info")),
				m.of("kubernetes_build_info")),
			summary: "Scheduler " + m.Name + " is of another minor release than an API server of {{ $labels.release }}.",
			description: fmt.Sprintf("`pmk-sched -n %s upgrade --name %s` builds and deploys it for the release of the cluster.",
				m.Namespace, m.Name),
		},
	}
}

// prometheusRule returns a PrometheusRule with the alerts.
func (m monitored) prometheusRule() *unstructured.Unstructured {
	var rules []any
	for _, a := range m.alerts() {
		if a.certificate && !m.Certificate || a.route && !m.Route {
			continue
		}
		rules = append(rules, fields{
			"alert": a.name, "expr": a.expression, "for": a.pending,
			"labels":      fields{"severity": a.severity, "scheduler": m.Name, "namespace": m.Namespace},
			"annotations": fields{"summary": a.summary, "description": a.description},
		})
	}
	return m.object(operatorAPI, "PrometheusRule", fields{"spec": fields{
		"groups": []any{fields{"name": m.objectName(), "rules": rules}},
	}})
}
