package explain

import (
	"cmp"
	"regexp"
	"strings"
)

var (
	// pluginError matches the scheduling framework's errors: `running PreFilter plugin "X": …`,
	// `running "X" filter plugin: …`, `rejected due to timeout after waiting 10s at plugin X`.
	pluginError = regexp.MustCompile(
		`running [A-Za-z ]*plugin "([^"]+)"|running "([^"]+)" [a-z]+ plugin|at plugin (\S+)|plugin "([^"]+)"`)
	// extenderError matches the errors from extender calls: from net/http, for a status, and for a
	// response.
	extenderError = regexp.MustCompile(
		`(?:Get|Post) "?(https?://[^" ]+?)"?: |extender at URL (\S+?), code|extender "?(https?://[^" ]+?)"? claims|extender: (https?://\S+) claims`)
	// missingNode matches the error from schedulers at 1.24 to 1.29 for a pod that only a node may run
	// which does not exist: its node affinity or, from 1.27 on, its local volume names it
	// (kubernetes#124559, kubernetes#123465).
	missingNode = regexp.MustCompile(`nodeinfo not found for node name "([^"]+)"`)
)

// failed explains a pod whose scheduling ended with an error.
func failed(in Input, message string) []Finding {
	text := strings.TrimSpace(message)
	s := findScheduler(in.Schedulers, schedulerOf(in.Pod))
	if m := pluginError.FindStringSubmatch(text); m != nil {
		name := strings.TrimSuffix(cmp.Or(m[1:]...), ":")
		findings := []Finding{{Cause: PluginError, By: name, Text: "plugin " + name + " failed: " + text,
			Fix: "read the log of the scheduler"}}
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
	if m := missingNode.FindStringSubmatch(text); m != nil {
		return append([]Finding{namesMissingNode(in, m[1])}, claimFindings(in)...)
	}
	f := Finding{Cause: Failed, Text: "the scheduler failed: " + text, Fix: "read the log of the scheduler"}
	if s != nil && len(s.Extenders) > 0 {
		f.By = s.suspects(text)
	}
	return append([]Finding{f}, claimFindings(in)...)
}

// namesMissingNode explains a pod that requires a node which does not exist.
func namesMissingNode(in Input, node string) Finding {
	const fix = "; Kubernetes 1.27.14, 1.28.10, 1.29.5 and later look at the other nodes that it allows"
	if volumes := where(in); volumes != "" {
		return Finding{
			Cause: VolumeNode, By: "VolumeBinding", Nodes: len(in.Nodes), Text: "no node is named " + node + ": " + volumes,
			Fix: "add the node again, or create the volume on another node" + fix,
		}
	}
	return Finding{
		Cause: NodeAffinity, By: "NodeAffinity", Nodes: len(in.Nodes), Text: "the pod's node affinity names node " + node +
			", which does not exist",
		Fix: "add the node, or change the node affinity" + fix,
	}
}
