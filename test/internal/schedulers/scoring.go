package schedulers

import "slices"

// settleScoring converts the three plugins of v1beta1 that score by resources to strategies of
// NodeResourcesFit, which replaced them in v1beta2. In 1.22, the one release that reads both config
// APIs, they run the same code (pkg/scheduler/framework/plugins/noderesources: leastResourceScorer
// and its siblings).
func settleScoring(profile map[string]any, running map[string]pluginSet) {
	strategies := map[string]string{
		"NodeResourcesLeastAllocated": "LeastAllocated", "NodeResourcesMostAllocated": "MostAllocated",
		"RequestedToCapacityRatio": "RequestedToCapacityRatio",
	}
	configs, _ := profile["PluginConfig"].([]any)
	arguments := func(plugin string) map[string]any {
		for _, c := range configs {
			if config := c.(map[string]any); config["Name"] == plugin {
				args, _ := config["Args"].(map[string]any)
				return args
			}
		}
		return nil
	}
	fit := arguments("NodeResourcesFit")
	scores := func(name string) bool {
		return slices.ContainsFunc(running["Score"].Enabled, func(p plugin) bool { return p.Name == name })
	}
	for name, strategy := range strategies {
		if !scores(name) {
			continue
		}
		old := arguments(name)
		strategyArgs := map[string]any{"Type": strategy, "Resources": old["Resources"], "RequestedToCapacityRatio": nil}
		if shape := old["Shape"]; shape != nil {
			strategyArgs["RequestedToCapacityRatio"] = map[string]any{"Shape": shape}
		}
		if fit != nil {
			fit["ScoringStrategy"] = strategyArgs
		}
		for i, p := range running["Score"].Enabled {
			if p.Name == name {
				running["Score"].Enabled[i].Name = "NodeResourcesFit"
			}
		}
	}
	if !scores("NodeResourcesFit") && fit != nil {
		// If NodeResourcesFit does not score, its strategy has no effect.
		delete(fit, "ScoringStrategy")
	}
	profile["PluginConfig"] = slices.DeleteFunc(configs, func(c any) bool {
		name, _ := c.(map[string]any)["Name"].(string)
		return strategies[name] != ""
	})
}
