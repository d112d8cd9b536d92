// Command pmk-scheduler is the kube-scheduler of the release that go.mod pins, with the shipped plugins.
//
// It is what a plugin author compiles and debugs; for the release of a running cluster use
// `pmk-sched build`, which generates the same program against that release. plugins.go is what it generates.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(plugins()...)))
}
