// Command pmk-scheduler is the kube-scheduler for the release in go.mod with the bundled plugins.
//
// Use it to compile and debug plugins. For a running cluster's release use `pmk-sched build`, which
// generates the same program for that release. plugins.go is its generated code.
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
