package main

import (
	"path"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pmk-sched/pmk-sched/internal/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/blockall"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/loadaware"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/networkaware"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/timestamp"
)

// shippedPackages is where the shipped plugins are, by import path.
const shippedPackages = "github.com/pmk-sched/pmk-sched/scheduler/plugins"

// shippedRules says of each shipped plugin what it needs, by its folder.
var shippedRules = map[string]func(scheduler.Arguments) ([]rbacv1.PolicyRule, error){
	"blockall":     blockall.Rules,
	"loadaware":    loadaware.Rules,
	"networkaware": networkaware.Rules,
	"timestamp":    timestamp.Rules,
}

// rulesOf returns what the shipped ones among plugins need, by their names.
func rulesOf(infos []plugins.Info) map[string]manifest.RulesFunc {
	rules := map[string]manifest.RulesFunc{}
	for _, info := range infos {
		dir, folder := path.Split(info.Package)
		declared, shipped := shippedRules[folder]
		if shipped && path.Clean(dir) == shippedPackages {
			rules[info.Name] = func(args []byte) ([]rbacv1.PolicyRule, error) { return declared(scheduler.NewArguments(args)) }
		}
	}
	return rules
}
