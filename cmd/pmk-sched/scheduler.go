package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/install"
)

const branchAuto = install.Auto

// schedulerFlags describe one scheduler: they are the same for render, diff,
// check and deploy.
func schedulerFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the scheduler: what pods put in spec.schedulerName"},
		&cli.StringFlag{Name: "image", Usage: "`REFERENCE` of the scheduler's image, as the nodes see it"},
		&cli.StringFlag{Name: "pull-policy", Usage: "`POLICY` for pulling the image: IfNotPresent, Always or Never"},
		&cli.StringFlag{Name: "config", Usage: "`FILE` with a KubeSchedulerConfiguration of any version"},
		&cli.BoolFlag{Name: "lossy", Usage: "leave out what of the configuration cannot be carried to the release, with a warning for each loss"},
		&cli.StringFlag{Name: "preset", Usage: "`PRESET` instead of a file: see `pmk-sched profile list`"},
		&cli.BoolFlag{Name: "policy-configmap", Usage: "give predicates, priorities and extenders as a legacy Policy: 1.20 and 1.21 only"},
		&cli.StringFlag{Name: "credentials", Usage: "`HOW` the scheduler proves who it is: node, node-inline, hostpath, serviceaccount", DefaultText: "node on a master, serviceaccount elsewhere"},
		&cli.StringFlag{Name: "branch", Usage: "`RELEASE` that the image was built from", DefaultText: "the API server's"},
		&cli.IntFlag{Name: "replicas", Usage: "`NUMBER` of replicas", DefaultText: "one for each control-plane node"},
		&cli.IntFlag{Name: "port", Usage: "`PORT` for health and metrics", DefaultText: "the first that is free from 10260"},
		&cli.StringSliceFlag{Name: "node-selector", Usage: "run on nodes with the label `KEY=VALUE` instead of control-plane nodes; can be repeated"},
		&cli.BoolFlag{Name: "any-node", Usage: "run on any node: for managed clusters, whose control plane has no nodes"},
		withFlag(), fileFlag(),
	}
}

// readOptions turns flags and file into what is to be installed. Flags win.
func readOptions(c *cli.Context) (install.Options, error) {
	f, err := readCustomScheduler(c.String("file"))
	if err != nil {
		return install.Options{}, err
	}
	reference, err := schedulerImage(c, f)
	if err != nil {
		return install.Options{}, err
	}
	o := install.Options{
		Name:        cmp.Or(c.String("name"), f.Metadata.Name),
		Namespace:   namespaceOf(c, f),
		Image:       reference,
		PullPolicy:  cmp.Or(c.String("pull-policy"), f.Spec.Image.PullPolicy),
		Branch:      cmp.Or(c.String("branch"), f.Spec.Source.Branch, branchAuto),
		Credentials: cmp.Or(c.String("credentials"), f.Spec.Credentials, install.Auto),
		Replicas:    cmp.Or(c.Int("replicas"), int(f.Spec.Replicas)),
		Port:        cmp.Or(c.Int("port"), int(f.Spec.Ports.Secure)),
		AnyNode:     c.Bool("any-node"),
		Lossy:       c.Bool("lossy"),
		Resources:   f.resources(),
		Flags:       flagsToRepeat(c),

		PolicyConfigMap: c.Bool("policy-configmap") || f.Spec.Configuration.PolicyConfigMap && !c.IsSet("policy-configmap"),
		Version:         ownVersion(),
		Now:             time.Now(),
	}
	if err := checkNumbers(c); err != nil {
		return o, err
	}
	if o.NodeSelector, err = parseLabels("node-selector", c.StringSlice("node-selector")); err != nil {
		return o, err
	}
	if o.NodeSelector == nil && !o.AnyNode {
		o.NodeSelector = maps.Clone(f.Spec.NodeSelector)
	}
	if err := o.Validate(); err != nil {
		return o, err
	}
	if o.Extenders, o.ExtenderClients, err = f.calledExtenders(); err != nil {
		return o, err
	}
	err = readConfiguration(c, f, &o)
	return o, err
}

// flagsToRepeat are the flags that were given and would have to be given again to
// deploy the same scheduler with another image of another release.
func flagsToRepeat(c *cli.Context) []string {
	var given []string
	for _, flag := range schedulerFlags() {
		name := flag.Names()[0]
		if !c.IsSet(name) || slices.Contains([]string{"name", "image", "branch"}, name) {
			continue
		}
		if _, several := flag.(*cli.StringSliceFlag); several {
			for _, value := range c.StringSlice(name) {
				given = append(given, "--"+name+"="+value)
			}
			continue
		}
		given = append(given, fmt.Sprintf("--%s=%v", name, c.Value(name)))
	}
	return given
}

// schedulerImage is the image that was named, else the one that build makes of the
// file: its tag tells the plugins.
func schedulerImage(c *cli.Context, f *customScheduler) (string, error) {
	if named := c.String("image"); named != "" || f.Spec.Image.Repository == "" || f.Spec.Image.Tag != "" {
		return cmp.Or(named, f.imageReference("")), nil
	}
	plugins, err := readChosen(c, f)
	if err != nil {
		return "", err
	}
	suffix, err := plugins.tagSuffix()
	return f.imageReference(suffix), err
}

// checkNumbers refuses a number that was given and means nothing: 0 would be
// taken for "not given".
func checkNumbers(c *cli.Context) error {
	if c.IsSet("replicas") && c.Int("replicas") < 1 {
		return usagef("leave it out for one on each control-plane node", "--replicas %d: at least one is needed", c.Int("replicas"))
	}
	if c.IsSet("port") && (c.Int("port") < 1 || c.Int("port") > 65535) {
		return usagef("leave it out for the first that is free", "--port %d: a port is from 1 to 65535", c.Int("port"))
	}
	return nil
}

// readConfiguration fills in the scheduler configuration: a flag of one kind
// puts aside whatever kind the file has.
func readConfiguration(c *cli.Context, f *customScheduler, o *install.Options) error {
	file, preset := c.String("config"), c.String("preset")
	var err error
	switch {
	case file != "" && preset != "":
		return usagef("", "give one of --config and --preset, not both")
	case file != "":
		o.ConfigurationName = file
		o.Configuration, err = readFile("--config", file)
	case preset != "":
		o.Preset = preset
	default:
		o.Preset = f.Spec.Configuration.Preset
		o.Configuration, o.ConfigurationName, err = f.configuration()
	}
	return err
}

// namespaceOf is the namespace of the scheduler's objects: of a flag or the
// environment, else of the file, else the default.
func namespaceOf(c *cli.Context, f *customScheduler) string {
	if globalIsSet(c, flagNamespace) {
		return global(c, flagNamespace)
	}
	return cmp.Or(f.Metadata.Namespace, defaultNamespace)
}

// nameFlag is --name on commands that need no more than the name.
func nameFlag() cli.Flag {
	return &cli.StringFlag{Name: "name", Usage: "`NAME` of the scheduler"}
}

// readName returns name and namespace of the scheduler that a command is about.
func readName(c *cli.Context) (name, namespace string, err error) {
	f, err := readCustomScheduler(c.String("file"))
	if err != nil {
		return "", "", err
	}
	name = cmp.Or(c.String("name"), f.Metadata.Name)
	if name == "" {
		return "", "", usagef("name it with --name", "which scheduler?")
	}
	return name, namespaceOf(c, f), nil
}
