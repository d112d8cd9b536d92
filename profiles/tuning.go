package profiles

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// Tunable is a v1 configuration whose settings can be read and changed.
type Tunable struct {
	doc     *schema.Document
	profile *yaml.Node
	api     schema.API
	minor   int
	// compiled are the compiled-in plugins that score, by name.
	compiled []string
}

// Names of the [Tunable] settings. The settings for a resource and a plugin's weight have its name
// after the prefix.
const (
	SettingStrategy    = "strategy"
	SettingPercentage  = "percentageOfNodesToScore"
	SettingConstraints = "defaultConstraints"
	SettingNUMA        = numaPlugin + " strategy"
	PrefixResource     = "resource "
	PrefixWeight       = "weight "
)

// Values of settings.
const (
	// StrategyRatio is the prefix for the strategy RequestedToCapacityRatio with the utilization, in
	// percent, that has the highest score. Full nodes score 2 out of 10.
	StrategyRatio = schema.CapacityRatio + " "
	// ValueOther is a value that no other setting has, such as another shape. It does not change the
	// configuration.
	ValueOther = "as it is"
	// ConstraintsSystem are the release's default constraints, ConstraintsNone are none, and
	// ConstraintsEven are constraints with maxSkew 1 over zones and hosts.
	ConstraintsSystem = "System"
	ConstraintsNone   = "none"
	ConstraintsEven   = "zone and host"

	numaPlugin = "NUMAAware" // of scheduler/plugins/numaaware
)

// NewTunable returns the configuration in a rendering request, as v1 configuration, to change the
// scheduler's profile. The compiled-in plugins are enabled in it.
func NewTunable(r Request) (*Tunable, error) {
	for _, p := range r.Enable {
		r.Plugins = append(slices.Clone(r.Plugins), p.Name)
	}
	if r.Source != nil {
		converted, err := Convert(ConvertRequest{API: "v1", Source: r.Source, SourceName: r.SourceName, Plugins: r.Plugins,
			Lossy: r.Lossy, SchedulerName: r.SchedulerName})
		if err != nil {
			return nil, err
		}
		r.Source, r.Preset = converted.YAML, ""
	}
	doc, err := load(&r)
	if err != nil {
		return nil, err
	}
	t := &Tunable{doc: doc, api: doc.API.Of(r.Release.Minor), minor: r.Release.Minor}
	d := deployment{Report: schema.NewReport(doc, r.Lossy), request: r, doc: doc, to: t.api}
	d.enablePlugins()
	if err := d.Problems.Err(doc.Name); err != nil {
		return nil, err
	}
	for _, p := range r.Enable {
		if slices.Contains(p.Points, "score") && (p.Enable == nil || slices.Contains(p.Enable, "score")) {
			t.compiled = append(t.compiled, p.Name)
		}
	}
	if t.profile = profileNamed(doc, r.SchedulerName); t.profile == nil {
		t.profile = doc.Profiles()[0]
	}
	if node.Text(t.profile, "schedulerName") == "" {
		node.Put(t.profile, "schedulerName", node.String(r.SchedulerName))
	}
	if doc.Preset {
		t.writeDefaultWeights(r.Release)
	}
	return t, nil
}

// Copy returns a copy to change.
func (t *Tunable) Copy() *Tunable {
	clone, doc := *t, *t.doc
	index := slices.Index(t.doc.Profiles(), t.profile)
	doc.Root = node.Copy(t.doc.Root)
	clone.doc, clone.profile = &doc, doc.Profiles()[index]
	return &clone
}

// YAML returns the configuration, without the fields that a deployment adds.
func (t *Tunable) YAML() ([]byte, error) { return schema.Encode(t.doc.Root) }

// PolicyPlugins returns the in-tree plugins whose weights express a policy of the cluster, and the
// compiled-in plugins that score. Preferences that pods have keep their weights.
func (t *Tunable) PolicyPlugins() []string {
	all := []string{schema.ResourcesFit, "NodeResourcesBalancedAllocation", schema.PodTopologySpread, "ImageLocality"}
	return append(all, t.compiled...)
}

// HasNUMA reports whether the plugin NUMAAware is enabled.
func (t *Tunable) HasNUMA() bool { return enables(t.profile, numaPlugin) }

// Get returns a setting's value.
func (t *Tunable) Get(setting string) string {
	strategy := node.Get(schema.ConfigOf(t.profile, schema.ResourcesFit), "args", "scoringStrategy")
	if plugin, ok := strings.CutPrefix(setting, PrefixWeight); ok {
		return strconv.Itoa(t.weight(plugin))
	}
	if resource, ok := strings.CutPrefix(setting, PrefixResource); ok {
		list := node.Items(strategy, "resources")
		for _, e := range list {
			if node.Text(e, "name") == resource {
				return strconv.Itoa(max(1, node.Number(e, "weight")))
			}
		}
		if len(list) == 0 && (resource == "cpu" || resource == "memory") {
			return "1"
		}
		return "0"
	}
	switch setting {
	case SettingStrategy:
		return strategyOf(strategy)
	case SettingPercentage:
		if n := node.Text(t.profile, SettingPercentage); n != "" {
			return n
		}
		return strconv.Itoa(node.Number(t.doc.Root, SettingPercentage))
	case SettingNUMA:
		if s := node.Text(schema.ConfigOf(t.profile, numaPlugin), "args", "strategy"); s != "" {
			return s
		}
		return "LeastAllocated"
	}
	args := node.Get(schema.ConfigOf(t.profile, schema.PodTopologySpread), "args")
	constraints := node.Items(args, "defaultConstraints")
	switch {
	case node.Text(args, "defaultingType") != "List":
		return ConstraintsSystem
	case len(constraints) == 0:
		return ConstraintsNone
	case same(node.Sequence(constraints), evenConstraints()):
		return ConstraintsEven
	}
	return ValueOther
}

// strategyOf returns the value of [SettingStrategy].
func strategyOf(strategy *yaml.Node) string {
	name := node.Text(strategy, "type")
	switch name {
	case "":
		return "LeastAllocated"
	case schema.CapacityRatio:
		shape := node.Items(strategy, "requestedToCapacityRatio", "shape")
		if len(shape) == 3 {
			peak := node.Number(shape[1], "utilization")
			if same(node.Sequence(shape), ratioShape(peak)) {
				return StrategyRatio + strconv.Itoa(peak)
			}
		}
		return ValueOther
	}
	return name
}

// same reports whether two nodes have the same values. The order of fields does not matter.
func same(a, b *yaml.Node) bool {
	var x, y any
	return a.Decode(&x) == nil && b.Decode(&y) == nil && reflect.DeepEqual(x, y)
}

// Set changes a setting to a value that [Tunable.Get] returns.
func (t *Tunable) Set(setting, value string) {
	if value == ValueOther || value == t.Get(setting) {
		return
	}
	strategy := func() *yaml.Node {
		s := node.Child(schema.ArgsOf(t.profile, schema.ResourcesFit), "scoringStrategy")
		if node.Text(s, "type") == "" {
			node.Put(s, "type", node.String("LeastAllocated"))
		}
		return s
	}
	number, _ := strconv.Atoi(value)
	if plugin, ok := strings.CutPrefix(setting, PrefixWeight); ok {
		t.setWeight(plugin, number)
		return
	}
	if resource, ok := strings.CutPrefix(setting, PrefixResource); ok {
		setResource(strategy(), resource, number)
		return
	}
	switch setting {
	case SettingStrategy:
		s := strategy()
		name, peak, ratio := strings.Cut(value, " ")
		node.Put(s, "type", node.String(name))
		node.Remove(s, "requestedToCapacityRatio")
		if number, _ := strconv.Atoi(peak); ratio {
			node.Put(s, "requestedToCapacityRatio", node.Mapping("shape", ratioShape(number)))
		}
		if len(node.Items(s, "resources")) == 0 { // the default, spelled out
			setResource(s, "cpu", 1)
		}
	case SettingPercentage:
		node.Remove(t.profile, SettingPercentage)
		node.Put(t.doc.Root, SettingPercentage, node.Int(number))
	case SettingNUMA:
		node.Put(schema.ArgsOf(t.profile, numaPlugin), "strategy", node.String(value))
	case SettingConstraints:
		args := schema.ArgsOf(t.profile, schema.PodTopologySpread)
		node.Remove(args, "defaultConstraints")
		node.Put(args, "defaultingType", node.String("List"))
		switch value {
		case ConstraintsSystem:
			node.Put(args, "defaultingType", node.String(value))
		case ConstraintsEven:
			node.Put(args, "defaultConstraints", evenConstraints())
		}
	}
}

func setResource(strategy *yaml.Node, resource string, weight int) {
	list := node.List(strategy, "resources")
	if len(list.Content) == 0 { // the defaults of the scheduler apply to an empty list only
		for _, name := range []string{"cpu", "memory"} {
			list.Content = append(list.Content, node.Mapping("name", node.String(name), "weight", node.Int(1)))
		}
	}
	node.Filter(list, func(e *yaml.Node) bool { return node.Text(e, "name") != resource })
	if weight > 0 {
		list.Content = append(list.Content, node.Mapping("name", node.String(resource), "weight", node.Int(weight)))
	}
	slices.SortStableFunc(list.Content, func(a, b *yaml.Node) int {
		return strings.Compare(node.Text(a, "name"), node.Text(b, "name"))
	})
}

// ratioShape scores nodes by utilization: 0 for an empty node, 10 at the peak, and 2 for a full
// one.
func ratioShape(peak int) *yaml.Node {
	point := func(utilization, score int) *yaml.Node {
		return node.Mapping("utilization", node.Int(utilization), "score", node.Int(score))
	}
	return node.Sequence([]*yaml.Node{point(0, 0), point(peak, 10), point(100, 2)})
}

// evenConstraints are the default constraints of the preset topology-spread.
func evenConstraints() *yaml.Node {
	constraint := func(key string) *yaml.Node {
		return node.Mapping("topologyKey", node.String(key), "maxSkew", node.Int(1),
			"whenUnsatisfiable", node.String("ScheduleAnyway"))
	}
	return node.Sequence([]*yaml.Node{constraint("topology.kubernetes.io/zone"), constraint("kubernetes.io/hostname")})
}
