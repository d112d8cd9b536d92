package replace

import (
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/versions"
)

// nodeFinding is the finding about this node's files.
func nodeFinding(e *DriftError) health.Finding {
	f := health.Finding{Code: health.NodeFilesDrifted, Text: drifted(e.Here), Hint: repeatReplace}
	if e.Here.State == staticpod.Started {
		f = health.Finding{Code: health.ReplaceUnfinished, Text: unfinished(e.Here), Hint: resumeReplace}
	}
	f.Kind, f.Name = health.Node, e.Here.Node
	_, f.Detail, _ = strings.Cut(e.Error(), "\n")
	return f
}

// replacedFindings are the findings about a node's replaced default scheduler, in a cluster whose
// API server is at a release.
func replacedFindings(n NodeStatus, server string) []health.Finding {
	if !n.Replaced {
		return nil
	}
	var found []health.Finding
	if !n.Ready {
		found = append(found, health.Finding{
			Code: health.DefaultNotReady, Kind: health.Node, Name: n.Node, Text: "its replaced default scheduler is not ready",
			Hint: "see `kubectl describe pod` of that node's kube-scheduler; `pmk-sched restore` on that node restores the " +
				"original",
		})
	}
	release, known := inspect.ImageRelease(n.Image)
	if want, err := versions.Parse(server); known && err == nil && release.MinorString() != want.MinorString() {
		found = append(found, health.Finding{
			Code: health.ReleaseSkew, Kind: health.Node, Name: n.Node,
			Text: fmt.Sprintf("its replaced default scheduler is %s, the API server is %s", release, want),
			Hint: "`pmk-sched upgrade --default` on that node builds and runs it for that release",
		})
	}
	return found
}
