package handmade

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/mod/module"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/versions"
)

// schedulerPlugins is the module of scheduler-plugins.
const schedulerPlugins = "sigs.k8s.io/scheduler-plugins"

// packages are the packages of scheduler-plugins by the name of the plugin (cmd/scheduler/main.go).
func packages() map[string]string {
	return map[string]string{
		"CapacityScheduling":         "pkg/capacityscheduling",
		"Coscheduling":               "pkg/coscheduling",
		"LoadVariationRiskBalancing": "pkg/trimaran/loadvariationriskbalancing",
		"LowRiskOverCommitment":      "pkg/trimaran/lowriskovercommitment",
		"NetworkOverhead":            "pkg/networkaware/networkoverhead",
		"NodeMetadata":               "pkg/nodemetadata",
		"NodeResourceTopologyMatch":  "pkg/noderesourcetopology",
		"NodeResourcesAllocatable":   "pkg/noderesources",
		"Peaks":                      "pkg/trimaran/peaks",
		"PodState":                   "pkg/podstate",
		"PreemptionToleration":       "pkg/preemptiontoleration",
		"QOSSort":                    "pkg/qos",
		"SySched":                    "pkg/sysched",
		"TargetLoadPacking":          "pkg/trimaran/targetloadpacking",
		"TopologicalSort":            "pkg/networkaware/topologicalsort",
	}
}

// chartValues takes over the values of scheduler-plugins' Helm chart, which have no Deployment.
func (r *reading) chartValues() {
	for _, o := range r.objects {
		values := o
		if node.Text(o, "kind") == "HelmRelease" {
			values = node.Get(o, "spec", "values")
		}
		scheduler := node.Get(values, "scheduler")
		if len(node.Items(values, "plugins", "enabled")) == 0 || scheduler == nil {
			continue
		}
		r.image(node.Text(scheduler, "image"))
		if n := node.Number(scheduler, "replicaCount"); n > 0 {
			r.spec.Replicas = v1alpha1.AutoInt(n)
			r.item(Kept, "replicas", "%d", n)
		}
		r.spec.AnyNode, r.spec.Credentials = true, "serviceaccount"
		r.item(Kept, "nodes", "any node, with a ServiceAccount")
		for i := 0; node.IsMapping(values) && i+1 < len(values.Content); i += 2 {
			if key := values.Content[i].Value; key != "scheduler" && key != "plugins" && key != "pluginConfig" {
				r.item(Open, "value "+key, "not a part of what pmk-sched deploys")
			}
		}
	}
}

// plugins names the source of the configuration's plugins that no kube-scheduler has.
func (r *reading) plugins() {
	named, err := profiles.NamedPlugins([]byte(r.spec.Configuration.Inline))
	if err != nil {
		return // deploying the request reports it, with the line
	}
	for _, plugin := range named {
		if versions.EverInTree(plugin) {
			continue
		}
		version, pkg := imageVersion(r.spec.Image.Reference), packages()[plugin]
		if version == "" || pkg == "" {
			r.item(Open, "plugin "+plugin, "no release has it: write its module or directory in spec.source.plugins, or "+
				"the name of a bundled one")
			continue
		}
		r.spec.Source.Plugins = append(r.spec.Source.Plugins,
			v1alpha1.Plugin{Module: schedulerPlugins + "@" + version, Package: pkg})
		r.item(Kept, "plugin "+plugin, "%s of %s@%s", pkg, schedulerPlugins, version)
	}
}

// imageVersion returns the version of scheduler-plugins in the image that the project publishes, or
// "" for another image.
func imageVersion(reference string) string {
	tag, err := name.NewTag(reference, name.WeakValidation)
	if err != nil || !strings.HasSuffix(tag.RepositoryStr(), "scheduler-plugins/kube-scheduler") ||
		module.CanonicalVersion(tag.TagStr()) != tag.TagStr() {
		return ""
	}
	return tag.TagStr()
}
