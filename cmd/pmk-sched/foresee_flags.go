package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
)

// simulateTimeout is enough for 20,000 pods on a small machine.
const simulateTimeout = 30 * time.Minute

// simulateFlags describe a simulation's scheduler and objects.
func simulateFlags(u *ui, more ...cli.Flag) []cli.Flag {
	return simulatedFlags(append(command.Shared("of a simulation",
		&cli.StringFlag{
			Name:  "against",
			Usage: "compare with the scheduler of `FILE`, a pmk-sched.yaml, or default: the default scheduler; it runs twice",
		},
		&cli.StringSliceFlag{
			Name: "price",
			Usage: "`TYPE=PRICE` of a node: TYPE is an instance type, or KEY=VALUE of a label; " +
				"adds the costs of all nodes and of empty nodes",
		},
		&cli.StringFlag{Name: "report", Usage: "write the result to `FILE` as a web page"},
		unknownReleaseFlag(u),
		timeoutFlag(simulateTimeout, "the scheduler to decide about all pods"), command.OutputFlag(""),
	), more...)...)
}

// simulatedFlags describe a scheduler to run on a snapshot.
func simulatedFlags(more ...cli.Flag) []cli.Flag {
	snapshot := command.Shared("of a snapshot", snapshotFlag(), trustFlag())
	return localSchedulerFlags("the snapshot's", append(snapshot, more...)...)
}

func snapshotFlag() cli.Flag {
	return &cli.StringFlag{Name: "snapshot", Usage: snapshotUsage, DefaultText: "a new one of the cluster"}
}

// trustRecorded is the flag that runs a deployed scheduler's code without a question.
const trustRecorded = "trust-recorded-plugins"

func trustFlag() cli.Flag {
	return &cli.BoolFlag{Name: trustRecorded, Usage: "run the recorded plugins of --name without a question"}
}

// snapshotUsage describes the flag --snapshot.
const snapshotUsage = "`PATH` of a snapshot, or of anything that `snapshot --from` reads"

// localSchedulerFlags describe a scheduler to run on this machine, at a release by default.
func localSchedulerFlags(release string, more ...cli.Flag) []cli.Flag {
	more = append([]cli.Flag{&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the scheduler", DefaultText: release}},
		more...)
	return append(command.Shared("of a scheduler to run on this machine", fileFlag(), nameFlag("scheduler"),
		&cli.StringFlag{Name: "preset", Usage: "configuration `PRESET`, see `pmk-sched profile list`"},
		&cli.StringFlag{Name: "config", Usage: "`FILE` with a KubeSchedulerConfiguration of any version"},
		lossyFlag(),
		&cli.StringSliceFlag{Name: "with", Usage: "`PLUGIN` to compile in, as in `pmk-sched build`"},
	), more...)
}

func parallelFlag() cli.Flag {
	return &cli.IntFlag{Name: "parallel", Usage: "run `NUMBER` of simulations at the same time",
		DefaultText: fmt.Sprintf("1, or %d with --job", defaultParallelJob), Action: atLeast("parallel", 1)}
}
