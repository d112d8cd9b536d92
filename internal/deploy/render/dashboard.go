package render

import (
	"hash/fnv"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dashboardLabel is the label by which Grafana's sidecar finds dashboards.
const dashboardLabel = "grafana_dashboard"

func (m monitored) dashboardMap(dashboard []byte) *unstructured.Unstructured {
	o := m.object("v1", "ConfigMap", fields{"data": fields{m.Name + ".json": string(dashboard) + "\n"}})
	o.SetName(m.Name + "-dashboard")
	labels := o.GetLabels()
	labels[dashboardLabel] = "1"
	o.SetLabels(labels)
	return o
}

// panel is a graph. unit is one of Grafana's.
type panel struct {
	title, about, unit string
	queries            []query
}

// query is a PromQL expression, and the legend for its series.
type query struct{ expression, legend string }

func (m monitored) panels() []panel {
	panels := []panel{
		{"Leader", "1 for the replica that leads", "short", []query{{m.leader(), "{{pod}}"}}},
		{"Pending pods",
			"by queue: active is next, backoff waits after a failure, unschedulable waits for a change of the cluster, gated " +
				"for another program", "short",
			[]query{{"sum by (queue) (" + m.ofLeader("scheduler_pending_pods") + ")", "{{queue}}"}}},
		{"Scheduling attempts", "a second, by result", "ops", []query{
			{m.rate("scheduler_schedule_attempts_total", "result"), "{{result}}"}}},
		{"Duration of an attempt", "", "s", []query{
			{m.quantile("0.99", m.metrics.AttemptDuration, "result"), "99 % {{result}}"},
			{m.quantile("0.5", m.metrics.AttemptDuration, "result"), "50 % {{result}}"},
		}},
		{"Time until a pod is bound", "all attempts together", "s", []query{
			{m.quantile("0.99", m.metrics.PodDuration, ""), "99 %"},
			{m.quantile("0.5", m.metrics.PodDuration, ""), "50 %"},
		}},
		{"Duration of extension points, 99 %", "", "s",
			[]query{{m.quantile("0.99", "scheduler_framework_extension_point_duration_seconds", "extension_point"),
				"{{extension_point}}"}}},
		{"Duration of plugins, 99 %", "kube-scheduler measures one scheduling cycle of ten", "s",
			[]query{{m.quantile("0.99", "scheduler_plugin_execution_duration_seconds", "plugin, extension_point"),
				"{{plugin}} {{extension_point}}"}}},
		{"Requests to the API server", "a second, by status code", "reqps", []query{
			{m.rate("rest_client_requests_total", "code"), "{{code}}"}}},
		{"CPU", "cores", "short", []query{{m.rate("process_cpu_seconds_total", "pod"), "{{pod}}"}}},
		{"Memory", "", "bytes", []query{{m.of("process_resident_memory_bytes"), "{{pod}}"}}},
		{"Release", "of each replica", "short", []query{
			{"count by (git_version) (" + m.of("kubernetes_build_info") + ")", "{{git_version}}"}}},
	}
	if m.metrics.UnschedulablePods != "" {
		panels = append(panels, panel{"Unschedulable pods by plugin", "a pod counts for each plugin that rejected it",
			"short",
			[]query{{"sum by (plugin) (" + m.ofLeader(m.metrics.UnschedulablePods) + ")", "{{plugin}}"}}})
	}
	return panels
}

// Panel size in Grafana's grid, which has 24 columns.
const (
	panelWidth, panelHeight = 8, 8
	panelsInRow             = 3
)

// schemaVersion is the version of Grafana 9's dashboards, which later versions read.
const schemaVersion = 36

// dashboard returns the dashboard as Grafana reads it.
func (m monitored) dashboard() fields {
	var panels []any
	for i, p := range m.panels() {
		var targets []any
		for n, q := range p.queries {
			targets = append(targets, fields{"refId": string(rune('A' + n)), "expr": q.expression, "legendFormat": q.legend})
		}
		panels = append(panels, fields{
			"id": i + 1, "type": "timeseries", "title": p.title, "description": p.about,
			"datasource": fields{"type": "prometheus", "uid": "${datasource}"},
			"gridPos": fields{"x": i % panelsInRow * panelWidth, "y": i / panelsInRow * panelHeight, "w": panelWidth,
				"h": panelHeight},
			"fieldConfig": fields{"defaults": fields{"unit": p.unit, "min": 0}, "overrides": []any{}},
			"targets":     targets,
		})
	}
	return fields{
		"uid": m.dashboardID(), "title": "Scheduler " + m.Name, "tags": []any{"kube-scheduler", "pmk-sched"},
		"schemaVersion": schemaVersion, "editable": true, "refresh": "1m", "time": fields{"from": "now-3h", "to": "now"},
		"templating": fields{"list": []any{fields{
			"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
		}}},
		"panels": panels,
	}
}

// dashboardID identifies the dashboard in Grafana, which allows 40 characters.
func (m monitored) dashboardID() string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(m.Namespace + "/" + m.Name))
	return "pmk-sched-" + strconv.FormatUint(sum.Sum64(), 16)
}
