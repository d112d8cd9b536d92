package main

import (
	"strings"
)

// probe reads a true or false field in versions.Rules from the source.
type probe struct {
	field string
	read  func(s *source) bool
}

// has returns a function that reports whether a file, or the files of a directory, contain a text.
func has(name, text string) func(*source) bool {
	return func(s *source) bool {
		if s.exists(name) && strings.HasSuffix(name, ".go") {
			return strings.Contains(s.text(name), text)
		}
		return strings.Contains(s.everyText(name), text)
	}
}

func exists(name string) func(*source) bool {
	return func(s *source) bool { return s.exists(name) }
}

// on reports whether a feature gate is enabled by default.
func on(gate string) func(*source) bool {
	return func(s *source) bool { return s.gates()[gate].Default }
}

// graduated reports whether a feature gate is enabled by default, or gone.
func graduated(gate string) func(*source) bool {
	return func(s *source) bool { return !s.gates()[gate].Exists || on(gate)(s) }
}

// probes read the true or false fields in versions.Rules, if a declaration shows them.
func probes() []probe {
	const (
		scheduler = kubernetes + "/pkg/scheduler"
		noderes   = framework + "/plugins/noderesources"
	)
	return []probe{
		{"Batching", on("OpportunisticBatching")},
		{"CoordinatedLeaderElection", func(s *source) bool { return s.gates()["CoordinatedLeaderElection"].Exists }},
		{"IndexedJobs", graduated("IndexedJob")},
		{"BackoffLimitPerIndex", graduated("JobBackoffLimitPerIndex")},
		{"Policy", has(scheduler, "createFromPolicy")},
		{"PreEnqueue", has(staging+"/config/v1/types.go", "PreEnqueue PluginSet")},
		{"SchedulingGates", func(s *source) bool { _, found := s.defaultPlugins("v1")["SchedulingGates"]; return found }},
		{"FitScores", has(noderes+"/fit.go", ") Score(")},
		{"IgnorableBind", has(scheduler+"/schedule_one.go", "IsIgnorable() {")},
		{"PreFilterNodes", func(s *source) bool { return s.structsIn(framework, stagedFramework)["PreFilterResult"] }},
		{"PluginContext", func(s *source) bool {
			return strings.HasPrefix(s.interfaces()["PluginFactory"]["New"], "(ctx.Context")
		}},
		{"StagedTypes", exists(stagedFramework)},
		{"StagedInterfaces", has(stagedFramework, filter)},
		{"InsecurePort", exists(kubernetes + "/cmd/kube-scheduler/app/options/insecure_serving.go")},
		{"ComponentBaseCLI", exists(componentBase + "/cli/run.go")},
		{"LogsJSONRegister", exists(componentBase + "/logs/json/register")},
		{"GeneratedOpenAPI", exists(kubernetes + "/pkg/generated/openapi/zz_generated.openapi.go")},
		{"VersionGates", has(kubernetes+"/pkg/features", "VersionedSpecs{")},
		{"PodSecurity", has(kubernetes+"/pkg/kubeapiserver/options/plugins.go", "security/podsecurity\"")},
		{"ContainerRuntimeFlag", has(kubernetes+"/cmd/kubelet/app/options/container_runtime.go", `"container-runtime"`)},
		{"FailCgroupV1", has(kubernetes+"/pkg/kubelet/apis/config/types.go", "FailCgroupV1")},
		{"ComparesImagesOnly", has(kubernetes+"/pkg/kubelet/container/helpers.go", "pickFieldsToHash")},
		{"KubeadmCrictl", has(kubernetes+"/cmd/kubeadm/app/util/runtime", `LookPath("crictl")`)},
		{"DiscoveryV1", exists(kubernetes + "/pkg/apis/discovery/v1")},
	}
}

// structsIn reports which structs the packages declare.
func (s *source) structsIn(pkgs ...string) map[string]bool {
	found := map[string]bool{}
	for _, pkg := range pkgs {
		for name := range s.structs(pkg) {
			found[name] = true
		}
	}
	return found
}

func (c *comparison) checkSwitches() {
	c.begin("what the release has", "versions/table.go")
	known := fieldsOf(c.rules)
	for _, p := range probes() {
		c.differValues(p.field, known[p.field], p.read(c.source))
	}
}

// checkLists compares the versions.Rules fields that are names.
func (c *comparison) checkLists() {
	c.begin("locks, probes, build tags, APIs", "versions/table.go servingRows, sourceRows")
	s := c.source
	c.differLists("lock", c.rules.ResourceLocks, s.locks())
	probes := "/healthz /healthz"
	server := s.text(kubernetes + "/cmd/kube-scheduler/app/server.go")
	if strings.Contains(server, "InstallLivezHandler") || strings.Contains(server, `"/livez"`) {
		probes = "/livez /readyz"
	}
	c.differValues("the probes", c.rules.LivenessPath+" "+c.rules.ReadinessPath, probes)
	c.differLists("build tag", c.rules.BuildTags, s.buildTags())
	for _, pkg := range c.rules.VersionPackages {
		if !s.exists(pkg + "/base.go") {
			c.differ("end before %s: package %s with the version of a binary", c.minor(), pkg)
		}
	}
	c.differValues("the API of PodDisruptionBudgets", c.rules.PolicyAPI, s.policyAPI())
}

// policyAPI returns the newest PodDisruptionBudget API.
func (s *source) policyAPI() string {
	for _, version := range []string{"v2", "v1", "v1beta1"} {
		if s.exists(kubernetes + "/pkg/apis/policy/" + version) {
			return "policy/" + version
		}
	}
	return ""
}

// locks returns the leader election locks that client-go does not refuse.
func (s *source) locks() []string {
	const pkg = clientGo + "/tools/leaderelection/resourcelock"
	text := s.text(pkg + "/interface.go")
	var supported []string
	for _, name := range matches(text, `case (\w*ResourceLock):`) {
		_, branch, _ := strings.Cut(text, "case "+name+":")
		branch, _, _ = strings.Cut(branch, "case ")
		if !strings.Contains(branch, "lock is removed") {
			supported = append(supported, s.constant(pkg, name))
		}
	}
	return supported
}

// buildTags returns the build tags of upstream's release binaries: names and, in braces, variables
// with more names.
func (s *source) buildTags() []string {
	text := s.text(kubernetes + "/hack/lib/golang.sh")
	var tags []string
	for _, list := range matches(text, `gotags="([^$"]+)`) {
		tags = append(tags, strings.FieldsFunc(list, func(r rune) bool { return r == ',' })...)
	}
	return append(tags, matches(text, `="?,([a-z]+)"`)...)
}
