package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/lifecycle"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// defaultTimeout leaves time to pull an image over a slow line.
const defaultTimeout = 5 * time.Minute

// schedulerFlags describe one scheduler: for render, diff, check and deploy.
func schedulerFlags(more ...cli.Flag) []cli.Flag {
	return append(command.Shared("of a scheduler",
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the scheduler: spec.schedulerName of its pods"},
		&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the scheduler's image",
			DefaultText: "the release's own, without plugins"},
		fileFlag(),
		&cli.StringFlag{Name: "preset", Usage: "configuration `PRESET`, see `pmk-sched profile list`"},
		&cli.StringFlag{Name: "config", Usage: "`FILE` with a KubeSchedulerConfiguration of any version"},
		lossyFlag(),
		&cli.BoolFlag{Name: "policy-configmap",
			Usage: "use a legacy Policy for predicates, priorities and extenders (1.20, 1.21)"},
		pluginsFlag(),
		&cli.StringFlag{Name: "branch", Usage: "`RELEASE` that the image was built from", DefaultText: "the API server's"},
		&cli.StringFlag{Name: "credentials",
			Usage:       "how the scheduler authenticates, `MODE`: node, node-inline, hostpath or serviceaccount",
			DefaultText: "node on a control-plane node, otherwise serviceaccount"},
		&cli.IntFlag{Name: "replicas", Usage: "`NUMBER` of replicas",
			DefaultText: "one for each control-plane node; up to 2 if the cluster has none"},
		&cli.StringSliceFlag{Name: "node-selector", Usage: "run on nodes with the label `KEY=VALUE`; any: on every node",
			DefaultText: "control-plane nodes; any if the cluster has none"},
		&cli.StringSliceFlag{Name: "route",
			Usage: "new pods that name no scheduler get this one, `PART=VALUE`: namespaces, namespace-selector, pods, " +
				"resources or share; none ends the route"},
		&cli.IntFlag{Name: "port", Usage: "`PORT` for health checks and metrics",
			DefaultText: "the first free port from 10260"},
		requireSignatureFlag(),
		&cli.StringFlag{Name: "pull-policy", Usage: "image pull `POLICY`: IfNotPresent, Always or Never"},
	), more...)
}

func lossyFlag() cli.Flag {
	return &cli.BoolFlag{Name: "lossy", Usage: "drop settings that the release does not support, with a warning for each"}
}

func fileFlag() *cli.StringFlag {
	return &cli.StringFlag{Name: "file", Aliases: []string{"f"},
		Usage: "`FILE`: pmk-sched.yaml, or - for standard input; flags win over it"}
}

func pluginsFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "plugins", Usage: "`PLUGIN` in the image, if the image was built elsewhere"}
}

func requireSignatureFlag() cli.Flag {
	return &cli.StringFlag{Name: "require-signature",
		Usage:       "require a signature of the public `KEY`, a PEM file, for the image; none lifts the requirement",
		DefaultText: "as before"}
}

// unknownReleaseFlag allows releases that are not in the tables of package versions.
func unknownReleaseFlag(u *ui) cli.Flag {
	const name, nearest = "unknown-release", "nearest"
	return &cli.StringFlag{
		Name: name, Usage: "`RULES` for a minor release that this pmk-sched does not know: nearest",
		DefaultText: "refuse it",
		Action: func(_ *cli.Context, value string) error {
			if value != nearest {
				return problem.Invalidf("", "invalid --%s %q: must be %s", name, value, nearest)
			}
			u.Session.NearestRules = true
			return nil
		},
	}
}

func nameFlag(of string) cli.Flag {
	return &cli.StringFlag{Name: "name", Usage: "`NAME` of the " + of}
}

func timeoutFlag(value time.Duration, what string) cli.Flag {
	return &cli.DurationFlag{Name: "timeout", Value: value, Usage: "wait at most `DURATION` for " + what,
		Action: positive("timeout")}
}

func positive(flag string) func(*cli.Context, time.Duration) error {
	return func(_ *cli.Context, d time.Duration) error {
		if d <= 0 {
			return problem.Invalidf("", "invalid --%s %s: must be greater than 0", flag, d)
		}
		return nil
	}
}

// exclude returns an error if a flag and one of the others are set.
func exclude(c *cli.Context, hint, flag string, others ...string) error {
	for _, other := range others {
		if c.IsSet(flag) && c.IsSet(other) {
			return problem.Invalidf(hint, "--%s and --%s exclude each other", flag, other)
		}
	}
	return nil
}

func yesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask for confirmation"}
}

func readSpec(c *cli.Context, u *ui) (*spec.Spec, error) {
	f := nameFlags(c, u)
	f.Image, f.PullPolicy = c.String("image"), c.String("pull-policy")
	f.RequireSignature = c.String("require-signature")
	f.Config, f.Preset, f.Lossy = c.String("config"), c.String("preset"), c.Bool("lossy")
	f.Credentials, f.Branch = c.String("credentials"), c.String("branch")
	f.Replicas, f.Port = given(c, "replicas", c.Int), given(c, "port", c.Int)
	f.PolicyConfigMap = given(c, "policy-configmap", c.Bool)
	f.NodeSelector, f.Plugins, f.Route = c.StringSlice("node-selector"), c.StringSlice("plugins"), c.StringSlice("route")
	sp, err := spec.Read(f)
	if err == nil {
		for _, note := range sp.Notes() {
			u.Session.Note(note)
		}
	}
	return sp, err
}

func readName(c *cli.Context, u *ui) (*spec.Spec, error) {
	sp, err := spec.Read(nameFlags(c, u))
	if err != nil {
		return nil, err
	}
	return sp, u.requireName(c, sp)
}

// requireName refuses a spec without a name. Its hint lists the deployed schedulers, if the cluster
// answers.
func (u *ui) requireName(c *cli.Context, sp *spec.Spec) error {
	err := sp.RequireName()
	if err == nil {
		return nil
	}
	return problem.WithHint(err, lifecycle.DeployedHint(c.Context, u.Session))
}

// named refuses a spec without a name.
func named(sp *spec.Spec, err error) (*spec.Spec, error) {
	if err != nil {
		return nil, err
	}
	return sp, sp.RequireName()
}

func nameFlags(c *cli.Context, u *ui) spec.Flags {
	return spec.Flags{File: c.String("file"), Stdin: u.In, Name: c.String("name"), Namespace: u.Namespace,
		Version: ownVersion(), CacheDir: u.Session.CacheDir}
}

// given returns a flag's value, nil if it was not given.
func given[T any](c *cli.Context, name string, value func(string) T) *T {
	if !c.IsSet(name) {
		return nil
	}
	v := value(name)
	return &v
}

// runOptions reads timeoutFlag, stableForFlag, and --no-rollback for the commands that have it.
func runOptions(c *cli.Context) deploy.RunOptions {
	return deploy.RunOptions{
		Timeout: c.Duration("timeout"), StableFor: c.Duration("stable-for"), NoRollback: c.Bool("no-rollback"),
	}
}

// stableForFlag sets how long a new scheduler must be ready without a restart.
func stableForFlag(value time.Duration) *cli.DurationFlag {
	return &cli.DurationFlag{
		Name: "stable-for", Value: value, EnvVars: []string{"PMK_SCHED_STABLE_FOR"},
		Usage: "`DURATION`: how long the scheduler must be ready without a restart", Action: positive("stable-for"),
	}
}

// extenderStableForFlag sets how long an extender, and each scheduler that it is wired into, must
// be ready without a restart.
func extenderStableForFlag() cli.Flag {
	f := stableForFlag(0)
	f.DefaultText = "10s; for the default scheduler 25s"
	f.Usage = "`DURATION`: how long the pods must be ready without a restart"
	return f
}

func atLeast(flag string, least int) func(*cli.Context, int) error {
	return func(_ *cli.Context, n int) error {
		if n < least || n > 100_000 {
			return problem.Invalidf("", "invalid --%s %d: must be between %d and 100000", flag, n, least)
		}
		return nil
	}
}

func validRevision(flag string) func(*cli.Context, int) error {
	return func(_ *cli.Context, number int) error {
		if number < 1 {
			return problem.Invalidf("revisions are numbered from 1", "invalid --%s %d", flag, number)
		}
		return nil
	}
}

// readRequiredKey returns the key from --require-signature for a command that knows no recorded
// key, which the value none would lift.
func readRequiredKey(c *cli.Context) (string, error) {
	key, err := spec.ReadKey(c.String("require-signature"))
	if key == v1alpha1.NoSignature {
		return "", problem.Invalidf("", "invalid --require-signature %s: must be a public key", key)
	}
	return key, err
}

// readAutoscaler returns the autoscaler that a flag names; it is empty if the flag is not set.
func readAutoscaler(c *cli.Context, flag string) (profiles.Autoscaler, error) {
	name := c.String(flag)
	if c.IsSet(flag) && !slices.Contains(profiles.Autoscalers(), name) {
		return "", problem.Invalidf("", "invalid --%s %q: must be cluster-autoscaler or karpenter", flag, name)
	}
	return profiles.Autoscaler(name), nil
}
