package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/admission"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/versions"
)

func controllerCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "controller", Usage: "keep CustomScheduler objects deployed, from inside the cluster",
		Subcommands: []*cli.Command{controllerRenderCommand(u), controllerRunCommand(u)},
	}
}

func controllerRenderCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "render", Usage: "print the objects that install the controller",
		Description: "Prints the Namespace, the CustomResourceDefinition, a ServiceAccount with its permissions, and the " +
			"Deployment, for `kubectl apply`. With --namespace the namespace must exist. With --branch it works without a " +
			"cluster.",
		UsageText: command.Examples(
			"pmk-sched controller render --image registry.example.com/pmk-sched:v1 --to-file controller.yaml",
			"pmk-sched controller render --image r.example.com/pmk-sched:v1 --allow-repository r.example.com",
			"pmk-sched controller render --image r.example.com/pmk-sched:v1 --admission arbiter",
		),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of an image with pmk-sched (required)"},
			&cli.IntFlag{Name: "replicas", Usage: "`NUMBER` of replicas, of which one acts", Value: 1},
			&cli.StringFlag{Name: "branch", Usage: "`RELEASE` of the API server, to work without a cluster",
				DefaultText: "the API server's"},
			controllerKeyFlag(), allowRepositoryFlag(), admissionFlag("install"),
			toFileFlag(), command.OutputFlag("to-file", "yaml", "json", "table"),
		},
		Action: func(c *cli.Context) (err error) {
			o := controller.ManifestOptions{Namespace: cmp.Or(u.Namespace, controller.DefaultNamespace),
				Image: c.String("image"), Replicas: c.Int("replicas")}
			if o.Image == "" {
				return problem.Invalidf("an image with pmk-sched is part of each release of pmk-sched", "--image is required")
			}
			if o.Replicas < 1 {
				return problem.Invalidf("", "invalid --replicas %d: must be at least 1", o.Replicas)
			}
			if o.Bounds, err = readBounds(c); err != nil {
				return err
			}
			if o.Admission, err = readAdmission(c); err != nil {
				return err
			}
			if branch := c.String("branch"); branch != "" {
				o.Release, err = versions.Parse(branch)
			} else {
				o.Release, err = serverRelease(u)
			}
			if err != nil {
				return err
			}
			objects, err := controller.Install(c.Context, o)
			if err != nil {
				return err
			}
			return u.rendered(c, objects)
		},
	}
}

func controllerKeyFlag() cli.Flag {
	return &cli.StringFlag{Name: "require-signature",
		Usage: "require a signature of the public `KEY`, a PEM file, for every image; no object can lift it"}
}

func allowRepositoryFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "allow-repository", DefaultText: "all",
		Usage: "deploy images only of `REPOSITORY` and those below it, such as r.example.com/team"}
}

// admissionFlag returns the flag for admission control; verb is what the command does with its
// parts.
func admissionFlag(verb string) cli.Flag {
	return &cli.StringFlag{Name: "admission", DefaultText: "none",
		Usage: verb + " `PARTS` of admission control: " + strings.Join(admission.Parts(), ", ") + " or both"}
}

func readAdmission(c *cli.Context) ([]string, error) {
	value := c.String("admission")
	if value == "" {
		return nil, nil
	}
	all := strings.Split(value, ",")
	for _, part := range all {
		if !slices.Contains(admission.Parts(), part) {
			return nil, problem.Invalidf("", "invalid --admission %q: must be %s", value,
				strings.Join(admission.Parts(), ", ")+" or both")
		}
	}
	return all, nil
}

// readBounds returns the bounds on the images that a controller deploys.
func readBounds(c *cli.Context) (bounds session.Bounds, err error) {
	if bounds.Key, err = readRequiredKey(c); err != nil {
		return bounds, err
	}
	for _, repository := range c.StringSlice("allow-repository") {
		prefix, err := image.ParsePrefix(repository)
		if err != nil {
			return bounds, fmt.Errorf("read --allow-repository: %w", err)
		}
		bounds.Repositories = append(bounds.Repositories, prefix)
	}
	return bounds, nil
}

func serverRelease(u *ui) (versions.Release, error) {
	cfg, err := u.Session.Connect()
	if err != nil {
		return versions.Release{}, err
	}
	return inspect.ServerRelease(cfg)
}

func controllerRunCommand(u *ui) *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "run the controller",
		Description: "Deploys the CustomScheduler objects of the namespace as deploy does, with the image for the release " +
			"of the API server, and follows its upgrades. Each change is verified with a pod, and undone if that fails. " +
			"Changes of others to the objects of a scheduler are reverted. It never builds an image.",
		UsageText: command.Examples("pmk-sched controller run --namespace schedulers",
			"pmk-sched controller run --leader-elect=false --metrics-address 0 --log-level info"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "metrics-address", Usage: "`ADDRESS` of the metrics, 0 for none", Value: ":8080"},
			&cli.StringFlag{Name: "health-address", Usage: "`ADDRESS` of /healthz and /readyz, 0 for none", Value: ":8081"},
			&cli.BoolFlag{Name: "leader-elect", Usage: "act only as the leader of several replicas", Value: true},
			&cli.DurationFlag{Name: "interval", Usage: "read the versions of the API servers every `DURATION`",
				Value: time.Minute},
			&cli.IntFlag{Name: "workers", Usage: "deploy at most `NUMBER` schedulers at a time", Value: 4},
			controllerKeyFlag(), allowRepositoryFlag(), admissionFlag("serve"),
			timeoutFlag(defaultTimeout, "a scheduler"), stableForFlag(10 * time.Second),
		},
		Action: func(c *cli.Context) error {
			run := runOptions(c)
			var err error
			if u.Session.Bounds, err = readBounds(c); err != nil {
				return err
			}
			parts, err := readAdmission(c)
			if err != nil {
				return err
			}
			return controller.Run(c.Context, u.Session, controller.Options{
				Namespace:      cmp.Or(u.Namespace, controller.DefaultNamespace),
				MetricsAddress: c.String("metrics-address"), HealthAddress: c.String("health-address"),
				LeaderElect: c.Bool("leader-elect"), Interval: c.Duration("interval"), Workers: c.Int("workers"),
				Timeout: run.Timeout, StableFor: run.StableFor, Version: ownVersion(),
				Admission: parts,
			})
		},
	}
}
