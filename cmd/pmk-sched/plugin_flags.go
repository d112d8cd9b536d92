package main

import "github.com/pmk-sched/pmk-sched/internal/build"

// pluginNames are the names by which a configuration knows plugins.
func pluginNames(plugins []build.PluginInfo) []string {
	var names []string
	for _, p := range plugins {
		names = append(names, p.Name)
	}
	return names
}
