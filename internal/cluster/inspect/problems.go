package inspect

import (
	"context"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/versions"
)

// KnownProblem is a known bug in a kube-scheduler of the cluster.
type KnownProblem struct {
	// Scheduler is the affected scheduler deployed by pmk-sched, "namespace/name". If it is empty,
	// each scheduler at the cluster's release is affected.
	Scheduler string `json:"scheduler,omitempty"`
	Release   string `json:"release"`
	// Issue is the upstream issue: "kubernetes#134400".
	Issue  string `json:"issue"`
	Effect string `json:"effect"`
	// When is the condition under which the bug matters, "if pods are preempted". It is empty if
	// the bug always matters, and leaves out the known facts about the scheduler's configuration.
	When string `json:"when,omitempty"`
	// Fix is the next release with the fix. It is empty if there is none.
	Fix string `json:"fix,omitempty"`
}

// describeProblem describes a release's problem. when is the unknown part of its condition.
func describeProblem(scheduler string, release versions.Release, p versions.Problem,
	when versions.Condition) KnownProblem {
	described := KnownProblem{Scheduler: scheduler, Release: release.String(), Issue: p.Issue, Effect: p.Effect,
		When: when.String()}
	if !p.Fix.IsZero() {
		described.Fix = p.Fix.String()
	}
	return described
}

// String returns the effect, the condition, the issue and the release with the fix.
func (p KnownProblem) String() string {
	text := p.Effect
	if p.When != "" {
		text = p.When + ", " + text
	}
	fix := "no release up to " + versions.Newest() + " has a fix"
	if p.Fix != "" {
		fix = "fixed in " + p.Fix
	}
	return text + " (" + p.Issue + "; " + fix + ")"
}

// problemsOf returns the known bugs in a release that matter to a scheduler. If usage is nil, it
// returns all known bugs, with their conditions.
func problemsOf(scheduler string, release versions.Release, usage *versions.Usage) []KnownProblem {
	found := []KnownProblem{}
	for _, p := range versions.KnownProblems(release) {
		when := p.When
		if usage != nil {
			if !when.Holds(*usage) {
				continue
			}
			when = versions.Condition{Pods: when.Pods}
		}
		found = append(found, describeProblem(scheduler, release, p, when))
	}
	return found
}

// ProblemsOf returns the known bugs in a release that matter to a scheduler with that usage.
func ProblemsOf(scheduler string, release versions.Release, usage versions.Usage) []KnownProblem {
	return problemsOf(scheduler, release, &usage)
}

// deployedProblems adds the known bugs in a deployed scheduler.
func (d *detector) deployedProblems(ctx context.Context, deployment *appsv1.Deployment) {
	release, err := versions.FromServer(deployment.Labels[ownership.LabelRelease])
	if d.o.Usage == nil || err != nil { // checkDeployed warns of an unknown release
		return
	}
	name := deployment.Namespace + "/" + deployment.Labels[ownership.LabelInstance]
	d.info.KnownProblems = append(d.info.KnownProblems, problemsOf(name, release, d.usage(ctx, deployment, release))...)
}

// Names in a deployed scheduler's pods: the volume with its configuration, and its container.
const (
	configVolume       = "config-file"
	schedulerContainer = "kube-scheduler"
)

// usage returns the features that a deployed scheduler uses, or nil if they are unknown.
func (d *detector) usage(ctx context.Context, deployment *appsv1.Deployment, release versions.Release) *versions.Usage {
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Name != configVolume || volume.ConfigMap == nil {
			continue
		}
		found, err := d.core.ConfigMaps(deployment.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			d.warnUnread(err, "read ConfigMap/"+deployment.Namespace+"/"+volume.ConfigMap.Name,
				"which known problems of "+release.String()+" its configuration meets is unknown")
			return nil
		}
		usage, err := d.o.Usage([]byte(found.Data[deployment.Labels[ownership.LabelInstance]+".yaml"]), release)
		if err != nil {
			d.warn("scheduler %s in namespace %s: %v", deployment.Labels[ownership.LabelInstance], deployment.Namespace, err)
			return nil
		}
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if container.Name == schedulerContainer {
				usage.Gates = FeatureGates(container.Command)
			}
		}
		return &usage
	}
	return nil
}

// FeatureGates returns the feature gates that the flags of a command set.
func FeatureGates(command []string) map[string]bool {
	gates := map[string]bool{}
	for _, f := range versions.ParseFlags(command) {
		if f.Name != "feature-gates" {
			continue
		}
		for _, gate := range strings.Split(f.Value, ",") {
			name, value, _ := strings.Cut(gate, "=")
			if enabled, err := strconv.ParseBool(value); err == nil {
				gates[name] = enabled
			}
		}
	}
	return gates
}
