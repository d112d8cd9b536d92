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
		{"default", "the defaults of the release"},
		{"binpack", "fills nodes one after another (MostAllocated), so that other nodes stay empty"},
		{"spread", "prefers the least allocated nodes (LeastAllocated with triple weight)"},
		{"capacity-ratio", "fills nodes up to about 70 % (RequestedToCapacityRatio)"},
		{"topology-spread", "spreads the pods of a set evenly over zones and hosts (PodTopologySpread with maxSkew 1)"},
		{"throughput", "schedules more pods per second in large clusters: checks fewer nodes per pod, more in parallel, and retries sooner"},
	}
}

// presetDocument parses a preset.
func presetDocument(name string) (*schema.Document, error) {
	var names []string
	for _, preset := range Presets() {
		if preset.Name == name {
			return parsePreset(name)
		}
		names = append(names, preset.Name)
	}
	try := "presets: " + strings.Join(names, ", ")
	if meant := schema.Nearest(name, names); meant != "" {
		try = fmt.Sprintf("did you mean %q?", meant)
	}
	return nil, &schema.Error{Problems: []schema.Problem{{Message: fmt.Sprintf("unknown preset %q", name), Try: try}}}
}

func parsePreset(name string) (*schema.Document, error) {
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
