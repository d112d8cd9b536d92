package replace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// defaultInsecurePort is the default scheduler's plain HTTP port, 1.20–1.22.
const defaultInsecurePort = 10251

// configStem begins the names of configuration files.
const configStem = "pmk-sched-"

// configuration is the new scheduler's configuration.
type configuration struct {
	text     []byte
	rendered *profiles.Rendered
	// file is the path on the node; its name ends in hash.
	file, hash string
	// binary is the hash of the program that checked the configuration, and id identifies image,
	// configuration and program.
	binary, id string
	// copies are the files on the node that the configuration was made from.
	copies []string
}

// configure renders the configuration and lets the image's program check it.
func (p *planner) configure(ctx context.Context, s *scheduler, image string) (*configuration, error) {
	c := &configuration{}
	from, err := p.findSource(s)
	if err != nil {
		return nil, err
	}
	if from.file != "" {
		c.copies = append(c.copies, from.file)
	}
	kubeconfig, _ := staticpod.Flag(s.args, "kubeconfig")
	kubeconfig = cmp.Or(kubeconfig, staticpod.InContainer(s.manifest.Pod, s.container, s.layout.Kubeconfig))
	if kubeconfig == "" {
		return nil, problem.Invalidf("", "no volume of the container %s has the scheduler's kubeconfig %s",
			schedulerContainer, s.layout.Kubeconfig)
	}
	c.copies = append(c.copies, s.layout.Kubeconfig)
	c.rendered, err = p.render(s, profiles.Request{
		Release: p.info.Release, SchedulerName: corev1.DefaultSchedulerName, LeaseName: schedulerLease,
		LeaseNamespace: metav1.NamespaceSystem,
		Kubeconfig:     kubeconfig, LeaderElect: s.Elects, InsecurePort: defaultInsecurePort,
		Preset: p.o.Preset, Source: from.text, SourceName: from.name, Enable: p.o.Plugins,
	})
	if err != nil {
		return nil, err
	}
	notes, warnings := profiles.SplitNotes(c.rendered.Notes, from.name)
	p.notes, p.warnings = append(p.notes, notes...), append(p.warnings, warnings...)
	c.text = c.rendered.YAML
	if _, given := staticpod.Flag(s.args, "config"); !given {
		if c.text, notes, warnings, err = convertFlags(c.text, p.o.Configuration, s.args,
			p.info.Release.Rules()); err != nil {
			return nil, err
		}
		p.notes, p.warnings = append(p.notes, notes...), append(p.warnings, warnings...)
	}
	if c.text, err = p.setExtenders(s, c.text); err != nil {
		return nil, err
	}
	unbatched, err := profiles.FindUnbatched(c.text, p.info.Release, p.o.Plugins, inspect.FeatureGates(s.args))
	if err != nil {
		return nil, err
	}
	for _, u := range unbatched {
		p.notef("%s", u)
	}
	if c.binary, err = p.checkWithBinary(ctx, s, image, c, kubeconfig); err != nil {
		return nil, err
	}
	c.hash = staticpod.Hash(c.text)[:hashLength]
	c.id = staticpod.Hash([]byte(image + "\n" + c.hash + "\n" + c.binary + string(c.rendered.Policy)))[:hashLength]
	c.file = path.Join(s.layout.ConfigDir, configStem+c.hash+".yaml")
	return c, nil
}

// source is the configuration from which the new one is rendered. file is the path of the current
// configuration on the node, which the backup keeps.
type source struct {
	text       []byte
	name, file string
}

// findSource returns the user's configuration, or else the current configuration.
func (p *planner) findSource(s *scheduler) (source, error) {
	from := source{text: p.o.Configuration, name: p.o.ConfigurationName}
	old, given := staticpod.Flag(s.args, "config")
	if !given {
		return from, nil
	}
	current := p.o.Preset == "" && len(p.o.Configuration) == 0
	onNode := staticpod.OnHost(s.manifest.Pod, s.container, old)
	var file *staticpod.File
	err := errors.New("it is not in a volume of the node")
	if onNode != "" {
		file, err = p.Files.Read(onNode)
	}
	switch {
	case err != nil && current:
		return from, problem.Errorf("specify one with --config or --preset", "read the current configuration %s: %w", old,
			err)
	case err != nil:
		return from, nil //nolint:nilerr // it is replaced by the configuration that was given
	case current:
		p.notef("configuration %s: the current one", onNode)
		return source{text: file.Data, name: onNode, file: onNode}, nil
	}
	from.file = onNode
	return from, nil
}

// checkWithBinary runs the image's program to read its release and to check configuration and
// flags. It returns the program's hash.
func (p *planner) checkWithBinary(ctx context.Context, s *scheduler, image string, c *configuration,
	kubeconfig string) (sum string, err error) {
	missing := slices.DeleteFunc(slices.Clone(c.rendered.Args), func(arg string) bool {
		_, given := versions.FindFlag(s.args, versions.ParseFlags([]string{arg})[0].Name)
		return given
	})
	if len(missing) > 0 {
		return "", problem.Invalidf("remove those fields from the configuration",
			"the configuration needs flags that the manifest does not have: %s", strings.Join(missing, " "))
	}
	dir, remove, err := safeio.MakeTemp("replace")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, remove()) }()
	binary, err := p.Binary(ctx, image, staticpod.Programs(s.container, schedulerContainer), dir)
	if err != nil {
		return "", fmt.Errorf("read the program of image %s: %w", image, err)
	}
	if binary.Missing != "" && p.o.Image != "" {
		return "",
			problem.Invalidf("use an image that has it, or name a program of the image in the manifest's command first",
				"the manifest runs %s, which is not in image %s", binary.Missing, image)
	}
	if err := p.checkRelease(ctx, binary, dir, image); err != nil {
		return "", err
	}
	if _, err := p.Version(ctx, binary, dir, s.args...); err != nil {
		return "", problem.WithHint(err, "nothing was changed; correct the flags in "+s.layout.Manifest+" first")
	}
	err = p.Check(ctx, binary, dir, configcheck.Request{
		Configuration: c.text, Kubeconfig: kubeconfig, Policy: c.rendered.Policy, Args: s.args,
		Warn: func(text string) { p.warnf("%s", text) },
	})
	if errors.Is(err, configcheck.ErrPartlyChecked) {
		p.warnf("%v", err)
	} else if err != nil {
		return "", err
	}
	text, err := os.ReadFile(binary.Path)
	if err != nil {
		return "", fmt.Errorf("read the program of image %s: %w", image, err)
	}
	return staticpod.Hash(text), nil
}

// checkRelease checks that the program is a kube-scheduler with the API server's minor.
func (p *planner) checkRelease(ctx context.Context, binary configcheck.Binary, dir, image string) error {
	output, err := p.Version(ctx, binary, dir)
	if err != nil {
		return fmt.Errorf("read the release of image %s: %w", image, err)
	}
	release, ok := configcheck.ParseVersion(output)
	if !ok {
		return problem.Invalidf("", "the program of image %s is not a kube-scheduler of a release: --version prints %q", image,
			output)
	}
	warning, err := configcheck.ReleaseCheck{Image: image, Want: p.info.Release}.Compare(release)
	if warning != "" {
		p.warnf("%s", warning)
	}
	return err
}
