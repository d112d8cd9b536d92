package explain

import (
	"cmp"
	"regexp"
	"strings"
)

var (
	// pluginError matches the errors of the scheduling framework: `running PreFilter plugin "X": …`, `running "X" filter plugin: …`,
	// `rejected due to timeout after waiting 10s at plugin X`.
	pluginError = regexp.MustCompile(`running [A-Za-z ]*plugin "([^"]+)"|running "([^"]+)" [a-z]+ plugin|at plugin (\S+)|plugin "([^"]+)"`)
	// extenderError matches the errors of calls of extenders: of net/http, of a status, and of a response.
	extenderError = regexp.MustCompile(`(?:Get|Post) "?(https?://[^" ]+?)"?: |extender at URL (\S+?), code|extender "?(https?://[^" ]+?)"? claims|extender: (https?://\S+) claims`)
)

// failed explains a pod whose scheduling ended with an error.
func failed(in Input, message string) []Finding {
	text := strings.TrimSpace(message)
	s := findScheduler(in.Schedulers, schedulerOf(in.Pod))
	if m := pluginError.FindStringSubmatch(text); m != nil {
		name := strings.TrimSuffix(cmp.Or(m[1:]...), ":")
		findings := []Finding{{Cause: PluginError, By: name, Text: "plugin " + name + " failed: " + text, Fix: "read the log of the scheduler"}}
		return append(findings, claimFindings(in)...)
	}
	if m := extenderError.FindStringSubmatch(text); m != nil {
		url := cmp.Or(m[1:]...)
		name := url
		if s != nil {
			name = s.extenderOf(url)
		}
		return []Finding{{
			Cause: ExtenderDown, By: name, Text: "extender " + name + " failed: " + text,
			Fix: "repair the extender, or set ignorable: true if pods may be placed without it",
		}}
	}
	if strings.Contains(text, "no nodes available to schedule pods") {
		return []Finding{{Cause: NoNodes, Text: "the cluster has no nodes", Fix: "add a node"}}
	}
	f := Finding{Cause: Failed, Text: "the scheduler failed: " + text, Fix: "read the log of the scheduler"}
	if s != nil && len(s.Extenders) > 0 {
		f.By = s.suspects(text)
	}
	return append([]Finding{f}, claimFindings(in)...)
}
