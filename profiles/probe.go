package profiles

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// ProbeRequest is a configuration to extend, see [Probe].
type ProbeRequest struct {
	// Configuration is a rendered configuration. Defaulted is the configuration that the scheduler
	// writes for it with --write-config-to, which includes the plugins that the release enables by
	// default.
	Configuration, Defaulted []byte
	Release                  versions.Release
	// Profile is the scheduler name of the profile to probe.
	Profile string
	// Recorder returns the URL of a service that gets the nodes that passed so far: all plugins (0),
	// and each extender that filters (1, 2, …). Verb is the verb of its extender call.
	Recorder func(stage int) string
	Verb     string
}

// Probed is a configuration that makes visible which plugin refuses which node. Every release
// reports only how many nodes were refused for a reason.
type Probed struct {
	YAML []byte
	// Plugins may refuse nodes, in the order in which the scheduler calls them.
	Plugins []ProbedPlugin
	// Unfiltered is the scheduler name of a profile that filters with no plugin.
	Unfiltered string
	// Weights are the weights of the plugins that score.
	Weights map[string]int64
	// Extenders are the configuration's extenders.
	Extenders []ProbedExtender
}

// ProbedPlugin is a plugin, and the scheduler name of a profile that filters nodes with it alone.
type ProbedPlugin struct{ Name, Profile string }

// ProbedExtender is an extender. Its name is its URL, as in the scheduler's log.
type ProbedExtender struct {
	Name    string
	Weight  int64
	Filters bool
}

const (
	// probePrefix begins the scheduler names of probes. No scheduler has such a name.
	probePrefix = "probe.pmk-sched.io/"
	// recorderTimeout leaves time to send all node names in a large cluster.
	recorderTimeout = 30 * time.Second
)

// IsProbe reports whether a scheduler name is a probe's name.
func IsProbe(schedulerName string) bool { return strings.HasPrefix(schedulerName, probePrefix) }

// Probe adds a profile for each plugin that filters, and recorders before, between and after the
// extenders. The profile to probe does not change, except that all nodes are examined instead of
// only a part.
func Probe(r ProbeRequest) (*Probed, error) {
	doc, err := schema.Read("configuration", r.Configuration, false)
	if err != nil {
		return nil, fmt.Errorf("read the configuration to probe: %w", err)
	}
	defaulted, err := schema.Read("defaulted configuration", r.Defaulted, false)
	if err != nil {
		return nil, fmt.Errorf("read the configuration that the scheduler has written: %w", err)
	}
	own, written := profileNamed(doc, r.Profile), profileNamed(defaulted, r.Profile)
	if own == nil || written == nil {
		return nil, fmt.Errorf("probe the configuration: it has no profile %s", r.Profile)
	}
	p := prober{
		sets: node.Get(written, "plugins"), api: doc.API.Of(r.Release.Minor),
		queueSort: node.Get(own, "plugins", schema.PointQueueSort), config: node.Get(own, "pluginConfig"),
	}
	if !r.Release.Rules().WritesDefaultPlugins {
		p.sets = mergedSets(node.Get(own, "plugins"), p.api)
	}
	probed := &Probed{Weights: p.weights(), Unfiltered: probePrefix + "none"}
	all := node.List(doc.Root, "profiles")
	node.Put(doc.Root, "percentageOfNodesToScore", node.Int(100))
	for _, profile := range all.Content {
		node.Remove(profile, "percentageOfNodesToScore")
	}
	for _, plugin := range p.plugins() {
		probe := ProbedPlugin{Name: plugin, Profile: probePrefix + plugin}
		probed.Plugins = append(probed.Plugins, probe)
		all.Content = append(all.Content, p.profile(probe))
	}
	all.Content = append(all.Content, p.profile(ProbedPlugin{Profile: probed.Unfiltered}))
	probed.Extenders = record(doc, r)
	if probed.YAML, err = schema.Encode(doc.Root); err != nil {
		return nil, fmt.Errorf("write the configuration to probe: %w", err)
	}
	return probed, nil
}

// mergedSets returns plugin sets with the defaults of a config API that has them for each extension
// point.
func mergedSets(plugins *yaml.Node, a schema.API) *yaml.Node {
	sets := node.Mapping()
	for _, point := range extensionPoints() {
		weights := schema.EffectivePlugins(plugins, point, a)
		for _, name := range schema.MergedPlugins(plugins, point, a) {
			schema.Enable(sets, point, name, weights[name])
		}
	}
	return sets
}

// extensionPoints returns the extension points of every config API.
func extensionPoints() []string {
	return []string{
		schema.PointQueueSort, "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind",
		schema.PointBind, "postBind",
	}
}

// profileNamed returns a profile by its scheduler name, or nil.
func profileNamed(doc *schema.Document, name string) *yaml.Node {
	all := doc.Profiles()
	i := slices.IndexFunc(all, func(p *yaml.Node) bool {
		own := node.Text(p, "schedulerName")
		return own == name || own == "" && name == "default-scheduler"
	})
	if i < 0 {
		return nil
	}
	return all[i]
}

// record adds recorders to the extenders, and returns the original extenders.
func record(doc *schema.Document, r ProbeRequest) []ProbedExtender {
	var found []ProbedExtender
	list := node.List(doc.Root, "extenders")
	stage := 0
	recorded := []*yaml.Node{r.recorder(stage)}
	for _, e := range list.Content {
		extender := schema.ReadExtender(e)
		found = append(found, ProbedExtender{Name: extender.URLPrefix, Weight: extender.Weight,
			Filters: extender.FilterVerb != ""})
		recorded = append(recorded, e)
		if extender.FilterVerb != "" {
			stage++
			recorded = append(recorded, r.recorder(stage))
		}
	}
	list.Content = recorded
	return found
}

func (r ProbeRequest) recorder(stage int) *yaml.Node {
	names := true
	return schema.Extender{URLPrefix: r.Recorder(stage), FilterVerb: r.Verb, HTTPTimeout: recorderTimeout,
		NodeCacheCapable: &names}.Node()
}
