package versions

import "fmt"

// The versions of the scheduler's configuration, group kubescheduler.config.k8s.io
// (staging/src/k8s.io/kube-scheduler/config), oldest first.
const (
	ConfigV1beta1 = "kubescheduler.config.k8s.io/v1beta1"
	ConfigV1beta2 = "kubescheduler.config.k8s.io/v1beta2"
	ConfigV1beta3 = "kubescheduler.config.k8s.io/v1beta3"
	ConfigV1      = "kubescheduler.config.k8s.io/v1"
)

// SecurePort is the port on which every release's kube-scheduler serves HTTPS
// unless told otherwise (pkg/scheduler/apis/config/types.go).
const SecurePort = 10259

// Rules is what holds for one minor of Kubernetes. Slices and maps belong to the
// caller.
type Rules struct {
	// Accepted lists the config APIs that the release decodes, as full
	// apiVersions, oldest first (pkg/scheduler/apis/config/scheme/scheme.go).
	Accepted []string
	// Preferred is the config API that the release itself writes with
	// --write-config-to.
	Preferred string
	// Render is the config API that pmk-sched writes for the release. It is
	// v1beta1, v1beta3 or v1: together they reach every release, so v1beta2
	// is read but never written.
	Render string
	// RejectedPlugins names, by config API, the plugins that the release
	// still has but whose enabling in that config API it refuses
	// (pkg/scheduler/apis/config/validation/validation.go).
	RejectedPlugins map[string][]string
	// Plugins lists the in-tree plugins that exist in the release, by name
	// (pkg/scheduler/framework/plugins/registry.go). Enabling any other name
	// fails at start unless it was compiled in.
	Plugins []string
	// Policy says that the legacy kind Policy is understood (1.20–1.22).
	Policy bool

	// LivenessPath and ReadinessPath are the paths to probe on the secure
	// port: /healthz, and from 1.31 /livez and /readyz
	// (cmd/kube-scheduler/app/server.go).
	LivenessPath, ReadinessPath string
	// InsecurePort says that a plain HTTP listener (10251 by default) is
	// opened and cannot be switched off with a configuration file (1.20–1.22).
	InsecurePort bool

	// LeaderElectFlagsWithConfig says that --leader-elect* are honoured
	// beside --config (from 1.22); before, the configuration alone counts.
	LeaderElectFlagsWithConfig bool
	// CoordinatedLeaderElection says that the feature gate of that name
	// exists (from 1.31). It registers for the default scheduler's lease
	// whatever the configuration says, so a second scheduler turns it off.
	CoordinatedLeaderElection bool
	// Flags lists the flags that the release's kube-scheduler takes, without
	// dashes, by name, deprecated ones too.
	Flags []string
	// RemovedFlags lists the flags of kube-scheduler that some supported
	// release has or had and that this one refuses, without dashes, by name.
	RemovedFlags []string

	// ComponentBaseCLI says that k8s.io/component-base/cli exists (from 1.23).
	ComponentBaseCLI bool
	// LogsJSONRegister says that k8s.io/component-base/logs/json/register
	// exists (from 1.22).
	LogsJSONRegister bool
	// GeneratedOpenAPI says that the OpenAPI definitions of kube-apiserver
	// are part of its module (from 1.24), so that it compiles from it alone.
	GeneratedOpenAPI bool
	// VersionGates says that the version linked into the binary chooses the
	// defaults of its feature gates (from 1.31) and has to be the exact tag.
	VersionGates bool
	// BuildTags are the build tags of upstream's release binaries
	// (hack/lib/golang.sh, kube::golang::build_binaries).
	BuildTags []string
	// VersionPackages are the packages whose variables hold the version that
	// a binary gives as its own: six each, set by the linker
	// (hack/lib/version.sh).
	VersionPackages []string
	// Go is a version of Go that compiles the minor, such as "1.18.10". It
	// is the last resort: the version belongs to the patch, and the release
	// itself names it.
	Go string

	// KubeletSkew is by how many minors a kubelet may be older than the API
	// server: 2, and 3 from 1.28 (Kubernetes' version skew policy).
	KubeletSkew int
	// ContainerRuntimeFlag says that the kubelet needs
	// --container-runtime=remote (up to 1.26).
	ContainerRuntimeFlag bool
	// ControlPlaneLabels and ControlPlaneTaints are the keys of the labels
	// and of the NoSchedule taints that kubeadm puts on control-plane nodes
	// (cmd/kubeadm/app/phases/markcontrolplane). Other distributions differ.
	ControlPlaneLabels, ControlPlaneTaints []string
}

// The minors of Kubernetes 1 that the table describes, both included.
const (
	oldestMinor = 20
	newestMinor = 37
)

// Oldest returns the first minor that the table describes: "1.20".
func Oldest() string { return Release{Major: 1, Minor: oldestMinor}.MinorString() }

// Newest returns the last minor that the table describes: "1.37".
func Newest() string { return Release{Major: 1, Minor: newestMinor}.MinorString() }

// Select returns the rules of a release. Only the minor counts; a pre-release
// follows the rules of its release. For a release newer than the table it
// returns the newest rules and a warning that says so; for one older than the
// table an *Error that names the range.
func Select(r Release) (Rules, []string, error) {
	minor := r.Minor
	var warnings []string
	switch {
	case r.Major < 1 || (r.Major == 1 && r.Minor < oldestMinor):
		return Rules{}, nil, &Error{
			Message: fmt.Sprintf("select rules for %s: Kubernetes %s is older than what is supported", r, r.MinorString()),
			Try:     fmt.Sprintf("use a release from %s to %s", Oldest(), Newest()),
		}
	case r.Major > 1 || r.Minor > newestMinor:
		minor = newestMinor
		warnings = append(warnings, fmt.Sprintf("Kubernetes %s is newer than %s, the newest minor known here: the rules of %s are used", r.MinorString(), Newest(), Newest()))
	}
	var rules Rules
	for _, row := range table() {
		if row.from <= minor && minor < row.before {
			row.set(&rules)
		}
	}
	rules.Plugins = namesAt(plugins(), minor)
	rules.Flags = namesAt(flags(), minor)
	rules.RemovedFlags = removedAt(flags(), minor)
	return rules, warnings, nil
}
