package profiles

import (
	"embed"
	"fmt"
	"strings"

	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// presetFiles has a v1 document for each preset; other config APIs are reached by conversion.
//
//go:embed presets/*.yaml
var presetFiles embed.FS

// Preset is a configuration that comes with pmk-sched.
type Preset struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Presets returns the presets in display order.
func Presets() []Preset {
	return []Preset{
		{"default",
			"the defaults of the release; of the openb trace 46 of 8,152 pods do not fit, 6 of 1,523 nodes stay empty"},
		{"binpack",
			"fills nodes one after another (MostAllocated), so that others stay empty: 139 of the trace, but 404 pods do not " +
				"fit"},
		{"spread",
			"prefers the least allocated nodes (LeastAllocated with triple weight): 41 pods of the trace do not fit, no node " +
				"stays empty"},
		{"capacity-ratio",
			"fills nodes up to about 70 % (RequestedToCapacityRatio): 527 pods of the trace do not fit, 227 nodes stay empty"},
		{"topology-spread",
			"spreads the pods of a set evenly over zones and hosts (maxSkew 1): 53 pods of the trace do not fit, 6 nodes stay " +
				"empty"},
		{"throughput",
			"binds about twice as many pods per second on 5,000 nodes, as it scores 2 % of them: 63 pods of the trace do not " +
				"fit, 10 nodes stay empty"},
	}
}

// CheckPreset returns an error if there is no preset of that name.
func CheckPreset(name string) error {
	var names []string
	for _, preset := range Presets() {
		if preset.Name == name {
			return nil
		}
		names = append(names, preset.Name)
	}
	try := "presets: " + strings.Join(names, ", ")
	if meant := schema.Nearest(name, names); meant != "" {
		try = fmt.Sprintf("did you mean %q?", meant)
	}
	return schema.NewError(try, "unknown preset %q", name)
}

// presetDocument parses a preset.
func presetDocument(name string) (*schema.Document, error) {
	if err := CheckPreset(name); err != nil {
		return nil, err
	}
	source, err := presetFiles.ReadFile("presets/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("read preset %s: %w", name, err)
	}
	doc, err := schema.Parse("preset "+name, source)
	if err != nil {
		return nil, err
	}
	doc.Preset = true
	return doc, nil
}
