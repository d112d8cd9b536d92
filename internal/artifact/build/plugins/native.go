package plugins

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/versions"
)

// signature is one signature of a framework function, and the minors [from, until) that accept it.
type signature struct {
	name, text  string
	from, until int
}

// onward ends the range of a signature that the newest release accepts.
const onward = 1 << 10

// factories are the signatures of a native plugin's New: PluginFactory in
// pkg/scheduler/framework/runtime/registry.go.
var factories = []signature{
	{"New", "(runtime.Object, v1alpha1.FrameworkHandle) (v1alpha1.Plugin, error)", 19, 20},
	{"New", "(runtime.Object, framework.Handle) (framework.Plugin, error)", 20, 29},
	{"New", "(ctx.Context, runtime.Object, framework.Handle) (framework.Plugin, error)", 29, 35},
	{"New", "(ctx.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error)", 35, onward},
}

// extensionMethods are the signatures of the extension points' methods
// (pkg/scheduler/framework/interface.go, from 1.34 also
// staging/src/k8s.io/kube-scheduler/framework/interface.go). {C} and {S} are placeholders for
// CycleState and Status, which moved in 1.34; see [cycleTypes].
var extensionMethods = []signature{
	{"PreEnqueue", "(ctx.Context, *v1.Pod) *{S}", 26, onward},
	{"Less", "(*framework.QueuedPodInfo, *framework.QueuedPodInfo) bool", 20, 34},
	{"Less", "(fwk.QueuedPodInfo, fwk.QueuedPodInfo) bool", 34, 37},
	{"Less", "(fwk.QueuedEntityInfo, fwk.QueuedEntityInfo) bool", 37, onward},
	{"EventsToRegister", "() []framework.ClusterEvent", 21, 28},
	{"EventsToRegister", "() []framework.ClusterEventWithHint", 28, 31},
	{"EventsToRegister", "(ctx.Context) ([]framework.ClusterEventWithHint, error)", 31, 34},
	{"EventsToRegister", "(ctx.Context) ([]fwk.ClusterEventWithHint, error)", 34, onward},
	{"PreFilter", "(ctx.Context, {C}, *v1.Pod) *{S}", 20, 24},
	{"PreFilter", "(ctx.Context, {C}, *v1.Pod) (*framework.PreFilterResult, *{S})", 24, 34},
	{"PreFilter", "(ctx.Context, {C}, *v1.Pod, []fwk.NodeInfo) (*framework.PreFilterResult, *{S})", 34, 35},
	{"PreFilter", "(ctx.Context, {C}, *v1.Pod, []fwk.NodeInfo) (*fwk.PreFilterResult, *{S})", 35, onward},
	{"AddPod", "(ctx.Context, {C}, *v1.Pod, *v1.Pod, *framework.NodeInfo) *{S}", 20, 21},
	{"AddPod", "(ctx.Context, {C}, *v1.Pod, *framework.PodInfo, *framework.NodeInfo) *{S}", 21, 34},
	{"AddPod", "(ctx.Context, {C}, *v1.Pod, fwk.PodInfo, fwk.NodeInfo) *{S}", 34, onward},
	{"Filter", "(ctx.Context, {C}, *v1.Pod, *framework.NodeInfo) *{S}", 20, 34},
	{"Filter", "(ctx.Context, {C}, *v1.Pod, fwk.NodeInfo) *{S}", 34, onward},
	{"PostFilter", "(ctx.Context, {C}, *v1.Pod, framework.NodeToStatusMap) (*framework.PostFilterResult, *{S})",
		20, 35},
	{"PostFilter", "(ctx.Context, {C}, *v1.Pod, framework.NodeToStatusReader) (*framework.PostFilterResult, *{S})",
		32, 35},
	{"PostFilter", "(ctx.Context, {C}, *v1.Pod, fwk.NodeToStatusReader) (*fwk.PostFilterResult, *{S})", 35, onward},
	{"PreScore", "(ctx.Context, {C}, *v1.Pod, []*v1.Node) *{S}", 20, 30},
	{"PreScore", "(ctx.Context, {C}, *v1.Pod, []*framework.NodeInfo) *{S}", 30, 34},
	{"PreScore", "(ctx.Context, {C}, *v1.Pod, []fwk.NodeInfo) *{S}", 34, onward},
	{"Score", "(ctx.Context, {C}, *v1.Pod, string) (int64, *{S})", 20, 33},
	{"Score", "(ctx.Context, {C}, *v1.Pod, *framework.NodeInfo) (int64, *{S})", 33, 34},
	{"Score", "(ctx.Context, {C}, *v1.Pod, fwk.NodeInfo) (int64, *{S})", 34, onward},
	{"NormalizeScore", "(ctx.Context, {C}, *v1.Pod, framework.NodeScoreList) *{S}", 20, 35},
	{"NormalizeScore", "(ctx.Context, {C}, *v1.Pod, fwk.NodeScoreList) *{S}", 35, onward},
	{"Reserve", "(ctx.Context, {C}, *v1.Pod, string) *{S}", 20, onward},
	{"Unreserve", "(ctx.Context, {C}, *v1.Pod, string)", 20, onward},
	{"Permit", "(ctx.Context, {C}, *v1.Pod, string) (*{S}, time.Duration)", 20, onward},
	{"PreBindPreFlight", "(ctx.Context, {C}, *v1.Pod, string) *{S}", 34, 36},
	{"PreBindPreFlight", "(ctx.Context, {C}, *v1.Pod, string) (*fwk.PreBindPreFlightResult, *{S})", 36, onward},
	{"PreBind", "(ctx.Context, {C}, *v1.Pod, string) *{S}", 20, onward},
	{"Bind", "(ctx.Context, {C}, *v1.Pod, string) *{S}", 20, onward},
	{"PostBind", "(ctx.Context, {C}, *v1.Pod, string)", 20, onward},
	{signPod, "(ctx.Context, *v1.Pod) ([]fwk.SignFragment, *{S})", 35, onward},
}

// signPod is the native plugin method that declares the part of a pod that its results depend on.
const signPod = "SignPod"

// cycleTypes are the types CycleState and Status before 1.34 and from 1.34.
var cycleTypes = []struct {
	from, until   int
	state, status string
}{
	{20, 34, "*framework.CycleState", "framework.Status"},
	{34, onward, "fwk.CycleState", "fwk.Status"},
}

// span is a set of minors [from, until).
type span struct{ from, until int }

func (s span) has(minor int) bool { return s.from <= minor && minor < s.until }
func (s span) and(o span) span    { return span{max(s.from, o.from), min(s.until, o.until)} }
func (s span) empty() bool        { return s.from >= s.until }

// String returns the minors as text: "1.29 to 1.32".
func (s span) String() string {
	switch {
	case s.empty():
		return "no release"
	case s.until == onward:
		return fmt.Sprintf("1.%d and later", s.from)
	case s.until == s.from+1:
		return fmt.Sprintf("1.%d", s.from)
	}
	return fmt.Sprintf("1.%d to 1.%d", s.from, s.until-1)
}

// minorsOf returns the minors in which a method may have a signature. A method's signatures do not
// overlap, except for PostFilter, where one is an alias.
func minorsOf(name, text string) (span, bool) {
	for _, known := range extensionMethods {
		if known.name != name && (known.name != "AddPod" || name != "RemovePod") {
			continue
		}
		for _, form := range cycleTypes {
			at := span{known.from, known.until}
			if strings.ContainsAny(known.text, "{") {
				at = at.and(span{form.from, form.until})
			}
			if !at.empty() && strings.NewReplacer("{C}", form.state, "{S}", form.status).Replace(known.text) == text {
				return at, true
			}
		}
	}
	return span{}, false
}

// nativeFit is the minors that a native plugin is written for.
type nativeFit struct {
	minors span
	// reasons are the functions that narrowed the range, the last one last.
	reasons []string
}

// fitNative returns the minors that accept a factory and the package's methods.
func fitNative(factory signature, methods []method) nativeFit {
	fit := nativeFit{minors: span{factory.from, factory.until}, reasons: []string{"func New" + factory.text}}
	for _, m := range methods {
		at, known := minorsOf(m.name, m.text)
		if !known {
			continue
		}
		if narrowed := fit.minors.and(at); narrowed != fit.minors {
			fit.minors = narrowed
			fit.reasons = append(fit.reasons, "func "+m.name+m.text)
		}
	}
	return fit
}

// refuse returns the error for a release that is not among the minors that fit.
func (f nativeFit) refuse(p Plugin, release versions.Release) error {
	if f.minors.empty() {
		return p.invalidf("use the signatures of one release", "no release accepts all of its functions: %s",
			readable(strings.Join(f.reasons, "; ")))
	}
	hint := "use the version of its module for " + release.MinorString() + ", or build a release of " + f.minors.String()
	if p.Module == "" {
		hint = "write it for " + release.MinorString() +
			", or as a portable plugin, which fits every release (`pmk-sched plugin new`)"
	}
	return p.invalidf(hint, "it is written for Kubernetes %s and does not fit %s: %s", f.minors, release,
		readable(f.reasons[len(f.reasons)-1]))
}

// readable returns a signature with the usual names of packages.
func readable(text string) string { return strings.ReplaceAll(text, "ctx.Context", "context.Context") }

func nativeSigns(methods []method) bool {
	return slices.ContainsFunc(methods, func(m method) bool {
		_, known := minorsOf(m.name, m.text)
		return known && m.name == signPod
	})
}

// nativePoints returns a native package's extension points by their names in a configuration, from
// the methods that have the signature of some release.
func nativePoints(methods []method) []string {
	var points []string
	for _, point := range Points() {
		if point.Configured && slices.ContainsFunc(methods, func(m method) bool {
			_, known := minorsOf(m.name, m.text)
			return known && m.name == point.Methods[0]
		}) {
			points = append(points, configured(point.Name))
		}
	}
	return points
}
