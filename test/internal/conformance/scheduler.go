//go:build linux

package conformance

// Scheduler is the name of the scheduler in Description.
const Scheduler = "bundled"

// Description is the pmk-sched.yaml of a scheduler with all bundled plugins, for upstream's suites.
// Their arguments leave the pods of others alone: BlockAll blocks a namespace that does not exist,
// nobody answers LoadAware, and the resource of NetworkAware is not installed.
const Description = `apiVersion: pmk-sched.io/v1alpha1
kind: CustomScheduler
metadata: {name: ` + Scheduler + `, namespace: kube-system}
spec:
  source:
    plugins:
    - {builtin: blockall, args: {namespaces: [blocked]}}
    - {builtin: coscheduling}
    - {builtin: costaware}
    - {builtin: elasticquota}
    - {builtin: gpupacking}
    - {builtin: loadaware, args: {prometheus: {url: "http://127.0.0.1:1"}}}
    - builtin: networkaware
      args: {group: network.example.com, version: v1alpha1, resource: networkmetrics, field: status.latency}
    - {builtin: numaaware}
    - {builtin: otherschedulers}
    - {builtin: timestamp}
`
