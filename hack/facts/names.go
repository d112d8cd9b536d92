package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/versions"
)

// checkReleases compares the release lists.
func (c *comparison) checkReleases() {
	c.begin("the newest minor release", "versions/releases.txt, and the constants named below")
	release := c.source.release
	if !slices.ContainsFunc(versions.Releases(), func(r versions.Release) bool {
		return r.Minor == release.Minor && r.Minor <= c.facts.Minor
	}) {
		c.differ("add to versions/releases.txt: %s", release)
	}
	for place, newest := range map[string]int{
		"versions/rules.go newestMinor":                               c.facts.Minor,
		"internal/artifact/build/binding/binding.go NewestMinor":      min(plugins.NewestMinor, c.facts.Minor),
		"profiles/schema/plugins.go lastSurveyed":                     c.facts.Minor,
		"test/binary/adapters/adapters_test.go releases (transcript)": c.facts.Minor,
	} {
		if newest < release.Minor {
			c.differ("raise %s to %d", place, release.Minor)
		}
	}
	slices.Sort(c.tables[len(c.tables)-1].Differences)
}

// checkGo compares the Go version for a release without rows: the patches in a minor release name
// several.
func (c *comparison) checkGo() {
	c.begin("version of Go", "versions/table.go sourceRows")
	named := strings.TrimSpace(c.source.text(kubernetes + "/.go-version"))
	if c.facts.Minor < c.source.release.Minor {
		c.differValues("the version of Go", c.rules.Go, named)
	}
}

// languageOf returns 1.26 for 1.26.8.
func languageOf(version string) string { return regexp.MustCompile(`^\d+\.\d+`).FindString(version) }

// flagFiles declare kube-scheduler's flags.
func flagFiles() []string {
	files := []string{
		apiserver + "/pkg/server/options/serving.go", apiserver + "/pkg/server/options/authentication.go",
		apiserver + "/pkg/server/options/authorization.go", componentBase + "/config/options/leaderelectionconfig.go",
		componentBase + "/metrics/options.go", componentBase + "/logs/api/v1/options.go",
		componentBase + "/compatibility/registry.go",
	}
	for _, name := range []string{"options.go", "deprecated.go", "insecure_serving.go"} {
		files = append(files, kubernetes+"/cmd/kube-scheduler/app/options/"+name)
	}
	return files
}

// sharedFlags are every component's flags, which other packages declare.
func sharedFlags() []string { return []string{"help", "version", "log-flush-frequency"} }

// flags returns the names of the flags that the sources declare.
func (s *source) flags() []string {
	found := sharedFlags()
	declared := regexp.MustCompile(`\.\w*Var\w*\(\s*(?:[^"()]|\([^()]*\))*?"([a-zA-Z][a-zA-Z0-9-]*)"`)
	for _, name := range flagFiles() {
		for _, m := range declared.FindAllStringSubmatch(s.text(name), -1) {
			found = append(found, m[1])
		}
	}
	return unique(found)
}

func (c *comparison) checkFlags() {
	c.begin("flags of kube-scheduler", "versions/names.go flags")
	c.differLists("flag", c.rules.Flags, c.source.flags())
}

// checkMetrics compares the metric names that the code reads.
func (c *comparison) checkMetrics() {
	c.begin("metrics that are read", "versions/metrics.go, internal/cluster/metrics and its callers")
	text := c.source.everyText(kubernetes + "/pkg/scheduler/metrics")
	read := matches(text, `Name:\s+"([a-z_]+)"`)
	for name := range maps.Values(fieldsOf(c.rules.Metrics)) {
		c.missingMetric(read, fmt.Sprint(name))
	}
	used, err := metricsInCode()
	if err != nil {
		c.differ("the code was not read, run the program in the root of the repository: %v", err)
	}
	for _, name := range used {
		c.missingMetric(read, name)
	}
}

func (c *comparison) missingMetric(read []string, name string) {
	short, of := strings.CutPrefix(name, "scheduler_")
	if of && !slices.Contains(read, short) && !slices.Contains(c.tables[len(c.tables)-1].Differences, name) {
		c.differ("end before %s: metric %s", c.minor(), name)
	}
}

// metricsInCode returns this repository's metric names that do not differ between releases.
func metricsInCode() ([]string, error) {
	var all []string
	name := regexp.MustCompile(`"(scheduler_[a-z_]+)"`)
	err := filepath.WalkDir("internal", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			all = append(all, m[1])
		}
		return err
	})
	return unique(all), err
}

// fieldsOf returns a struct's fields by name.
func fieldsOf(v any) map[string]any {
	fields := map[string]any{}
	value := reflect.ValueOf(v)
	for i := range value.NumField() {
		fields[value.Type().Field(i).Name] = value.Field(i).Interface()
	}
	return fields
}

// checkPorts compares the default port.
func (c *comparison) checkPorts() {
	c.begin("ports", "versions/rules.go SecurePort")
	text := c.source.text(schedulerConfig + "/types.go")
	c.differValues("the secure port", versions.SecurePort, strings.Join(matches(text, `DefaultKubeSchedulerPort = (\d+)`), ""))
}

// checkExtenderTypes compares the extender API's types with the types in this module.
func (c *comparison) checkExtenderTypes() {
	c.begin("types of the extender API", "scheduler/extender, go.mod k8s.io/kube-scheduler")
	structs := c.source.structs(staging + "/extender/v1")
	var known []string
	for _, of := range []any{
		extenderv1.ExtenderArgs{}, extenderv1.ExtenderFilterResult{}, extenderv1.ExtenderPreemptionArgs{},
		extenderv1.ExtenderPreemptionResult{}, extenderv1.ExtenderBindingArgs{}, extenderv1.ExtenderBindingResult{},
		extenderv1.HostPriority{}, extenderv1.Victims{}, extenderv1.MetaVictims{}, extenderv1.MetaPod{},
	} {
		name := reflect.TypeOf(of).Name()
		known = append(known, name)
		var fields []string
		if t := structs[name]; t != nil {
			for _, f := range t.Fields.List {
				for _, n := range f.Names {
					fields = append(fields, n.Name)
				}
			}
		}
		c.differLists("field of "+name, slices.Collect(maps.Keys(fieldsOf(of))), fields)
	}
	c.differLists("type", known, slices.Collect(maps.Keys(structs)))
}

// checkPermissions looks for the roles that the scheduler is bound to.
func (c *comparison) checkPermissions() {
	c.begin("roles that the API server keeps", "rbac/rbac.go")
	policy := c.source.everyText(kubernetes + "/plugin/pkg/auth/authorizer/rbac/bootstrappolicy")
	for _, role := range []string{
		"system:kube-scheduler", "system:volume-scheduler", "extension-apiserver-authentication-reader",
	} {
		if !strings.Contains(policy, `"`+role+`"`) {
			c.differ("end before %s: role %s", c.minor(), role)
		}
	}
}

// informer is an API that pkg/scheduler watches.
var informer = regexp.MustCompile(`\.(Core|Policy|Storage|Resource|Scheduling|Apps)\(\)\.(V\w+)\(\)\.(\w+)\(\)`)

// watched returns the resources that the scheduler watches, as apiVersion and resource.
func (s *source) watched() []string {
	groups := map[string]string{
		"Core": "", "Policy": "policy/", "Storage": "storage.k8s.io/", "Resource": "resource.k8s.io/",
		"Scheduling": "scheduling.k8s.io/", "Apps": "apps/",
	}
	var found []string
	for _, m := range informer.FindAllStringSubmatch(s.everyText(kubernetes+"/pkg/scheduler"), -1) {
		found = append(found, groups[m[1]]+strings.ToLower(m[2])+" "+m[3])
	}
	return unique(found)
}

// checkResources compares the resources that the scheduler watches with the snapshot kinds and with
// the requirements for an API server: resources that its neighbors do not all serve.
func (c *comparison) checkResources() {
	c.begin("resources that the scheduler watches", "internal/foresight/snapshot/kinds.go, versions/skew.go requirements")
	watched := c.source.watched()
	required, since := versions.Required(c.facts), c.watchedSince(watched)
	for _, resource := range watched {
		apiVersion, name, _ := strings.Cut(resource, " ")
		i := slices.IndexFunc(snapshot.Kinds(), func(k *snapshot.Kind) bool {
			return strings.EqualFold(k.Resource, name) && slices.ContainsFunc(k.Versions, func(v string) bool {
				return snapshot.APIVersion(k.Group, v) == apiVersion
			})
		})
		if i < 0 {
			c.differ("add to the kinds of snapshots: %s", resource)
		}
		if slices.Contains(since, resource) && !slices.Contains(required, resource) {
			c.differ("add to the requirements from %s on, if it is watched by default: %s", c.minor(), resource)
		}
	}
}

// watchedSince returns the resources of the list that a release without rows watches and the tested
// release before it does not. Whether a feature gate that is disabled by default guards the watch
// is for the reader to find out, so that releases with rows are not compared.
func (c *comparison) watchedSince(watched []string) []string {
	if c.before == nil || c.facts.Minor >= c.source.release.Minor {
		return nil
	}
	before := c.before.watched()
	return slices.DeleteFunc(slices.Clone(watched),
		func(resource string) bool { return slices.Contains(before, resource) })
}

// checkGangs compares the feature gates and the API for placing groups of pods.
func (c *comparison) checkGangs() {
	c.begin("groups of pods", "versions/table.go Gangs")
	known := c.rules.Gangs
	gates := c.source.gates()
	for _, gate := range known.Gates {
		if !gates[gate].Exists {
			c.differ("end before %s: feature gate %s", c.minor(), gate)
		}
	}
	if read := c.source.groups(); read != "" || known.API != "" {
		c.differValues("the API of groups", strings.TrimSpace(known.API+" "+known.Resource), read)
	}
}

// groups returns the most stable group API that the scheduler watches, and its resource.
func (s *source) groups() string {
	best, rank := "", -1
	for _, resource := range s.watched() {
		apiVersion, name, _ := strings.Cut(resource, " ")
		version, of := strings.CutPrefix(apiVersion, "scheduling.k8s.io/")
		if !of || name != "PodGroups" && name != "Workloads" {
			continue
		}
		stability := 2
		for i, level := range []string{"alpha", "beta"} {
			if strings.Contains(version, level) {
				stability = i
			}
		}
		if stability > rank {
			best, rank = apiVersion+" "+strings.ToLower(name), stability
		}
	}
	return best
}

// checkKubeadm compares the lab settings that come from kubeadm.
func (c *comparison) checkKubeadm() {
	c.begin("kubeadm", "versions/table.go nodeRows, internal/artifact/build (EtcdVersion)")
	constants := c.source.text(kubernetes + "/cmd/kubeadm/app/constants/constants.go")
	scheme := c.source.text(kubernetes + "/cmd/kubeadm/app/apis/kubeadm/scheme/scheme.go")
	if apis := regexp.MustCompile(`SetVersionPriority\((v\w+)\.`).FindStringSubmatch(scheme); apis != nil {
		c.differValues("the API of kubeadm", c.rules.KubeadmAPI, "kubeadm.k8s.io/"+apis[1])
	}
	if skew := matches(constants, `MinimumKubeletVersion = getSkewedKubernetesVersion\(-(\d+)\)`); len(skew) > 0 {
		c.differValues("the skew of kubelets", c.rules.KubeletSkew, skew[0])
	}
	if etcd := matches(constants, `DefaultEtcdVersion = "([^"]+)"`); len(etcd) > 0 {
		if languageOf(etcd[0]) != languageOf(strings.TrimPrefix(build.EtcdVersion, "v")) {
			c.note("kubeadm runs etcd %s, labs without kubeadm run %s", etcd[0], build.EtcdVersion)
		}
	}
	images := []string{}
	for _, name := range []string{"CoreDNSVersion", "PauseVersion"} {
		images = append(images, name+" "+strings.Join(matches(constants, name+` = "([^"]+)"`), ""))
	}
	c.note("images: %s; labs ask kubeadm for their names", strings.Join(images, ", "))
}
