package profiles

import (
	"fmt"
	"strings"
)

// Preset is a configuration that comes with pmk-sched.
type Preset struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// document is the configuration in v1; the other config APIs are reached by
	// the same conversion that carries a user's own.
	document string
}

// Presets returns the presets in the order in which to show them.
func Presets() []Preset {
	return []Preset{
		{"default", "the release's own defaults, under a name and a lease of its own", ``},
		{"binpack", "fills nodes one after the other (MostAllocated), so that whole nodes stay free", `
profiles:
- plugins:
    score:
      enabled:
      - name: NodeResourcesFit
        weight: 5
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources:
        - name: cpu
          weight: 1
        - name: memory
          weight: 1
  # The default constraints would spread the pods of a set; those that pods bring along still count.
  - name: PodTopologySpread
    args:
      defaultingType: List
`},
		{"spread", "prefers the emptiest nodes (LeastAllocated with three times its weight)", `
profiles:
- plugins:
    score:
      enabled:
      - name: NodeResourcesFit
        weight: 3
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: LeastAllocated
        resources:
        - name: cpu
          weight: 1
        - name: memory
          weight: 1
`},
		{"capacity-ratio", "fills nodes up to about 70 % and avoids those that are fuller (RequestedToCapacityRatio)", `
profiles:
- plugins:
    score:
      enabled:
      - name: NodeResourcesFit
        weight: 5
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        requestedToCapacityRatio:
          shape:
          - utilization: 0
            score: 0
          - utilization: 70
            score: 10
          - utilization: 100
            score: 2
        resources:
        - name: cpu
          weight: 1
        - name: memory
          weight: 1
  # The default constraints would spread the pods of a set; those that pods bring along still count.
  - name: PodTopologySpread
    args:
      defaultingType: List
`},
		{"topology-spread", "spreads the pods of a set evenly over zones and hosts (PodTopologySpread with maxSkew 1)", `
profiles:
- plugins:
    score:
      enabled:
      - name: PodTopologySpread
        weight: 5
  pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - topologyKey: topology.kubernetes.io/zone
        maxSkew: 1
        whenUnsatisfiable: ScheduleAnyway
      - topologyKey: kubernetes.io/hostname
        maxSkew: 1
        whenUnsatisfiable: ScheduleAnyway
`},
		{"throughput", "more pods a second on large clusters: looks at fewer nodes for each pod, more at a time, and retries sooner", `
parallelism: 32
percentageOfNodesToScore: 10
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 5
`},
	}
}

// presetDocument returns a preset as a document.
func presetDocument(name string) (*document, error) {
	var names []string
	for _, preset := range Presets() {
		if preset.Name == name {
			return parsePreset(preset)
		}
		names = append(names, preset.Name)
	}
	try := "presets: " + strings.Join(names, ", ")
	if meant := nearest(name, names); meant != "" {
		try = fmt.Sprintf("did you mean %q?", meant)
	}
	return nil, &Error{Problems: []Problem{{Message: fmt.Sprintf("there is no preset %q", name), Try: try}}}
}

func parsePreset(p Preset) (*document, error) {
	source := fmt.Sprintf("apiVersion: %s/v1\nkind: %s\n%s", configGroup, configKind, p.document)
	doc, err := parse("preset "+p.Name, []byte(source))
	if err != nil {
		return nil, err
	}
	doc.preset = true
	return doc, nil
}
