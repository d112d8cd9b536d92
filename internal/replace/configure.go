package replace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/problem"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// configure renders the configuration, and has the very binary check it.
func (p *planner) configure(ctx context.Context) error {
	old, given := staticpod.Flag(p.r.words, "config")
	if err := p.findSource(old, given); err != nil {
		return err
	}
	kubeconfig, _ := staticpod.Flag(p.r.words, "kubeconfig")
	kubeconfig = cmp.Or(kubeconfig, staticpod.InContainer(p.manifest.Pod, p.container, p.r.Layout.Kubeconfig))
	if kubeconfig == "" {
		return problem.Invalidf("", "the container %s does not see %s, the scheduler's kubeconfig", schedulerContainer, p.r.Layout.Kubeconfig)
	}
	p.r.copies = append(p.r.copies, p.r.Layout.Kubeconfig)
	rendered, err := p.render(profiles.Request{
		Release: p.info.Release, SchedulerName: "default-scheduler", LeaseName: schedulerLease, LeaseNamespace: metav1.NamespaceSystem,
		Kubeconfig: kubeconfig, LeaderElect: p.r.elects, InsecurePort: defaultInsecurePort,
		Preset: p.o.Preset, Source: p.source, SourceName: p.name, Enable: p.o.Plugins,
	})
	if err != nil {
		return err
	}
	for _, n := range rendered.Notes {
		tell := p.note
		if n.Warning {
			tell = p.warnOf
		}
		tell("%s", cmp.Or(strings.TrimSpace(strings.Join([]string{p.name, n.String()}, ": ")), n.String()))
	}
	p.r.Configuration, p.rendered = rendered.YAML, rendered
	if !given {
		var notes []string
		if p.r.Configuration, notes, err = carryFlags(rendered.YAML, p.o.Configuration, p.r.words); err != nil {
			return err
		}
		p.r.Notes = append(p.r.Notes, notes...)
	}
	if err := p.setExtenders(); err != nil {
		return err
	}
	sum, err := p.askBinary(ctx, kubeconfig, rendered.Args)
	if err != nil {
		return err
	}
	p.r.binary = sum
	p.r.hash = staticpod.Hash(p.r.Configuration)[:hashLength]
	p.r.id = staticpod.Hash([]byte(p.r.Image + "\n" + p.r.hash + "\n" + sum + string(rendered.Policy)))[:hashLength]
	p.r.ConfigDir = configDir
	if p.r.Layout.Name == "pmk" {
		p.r.ConfigDir = pmkConfigDir
	}
	p.r.ConfigFile = path.Join(p.r.ConfigDir, configStem+p.r.hash+".yaml")
	return nil
}

// findSource takes the configuration that was asked for, else the one that the
// scheduler has. The old one is kept in the backup in any case.
func (p *planner) findSource(old string, given bool) error {
	p.source, p.name = p.o.Configuration, p.o.ConfigurationName
	if !given {
		return nil
	}
	onNode := staticpod.OnHost(p.manifest.Pod, p.container, old)
	var file *staticpod.File
	err := errors.New("no volume of the node has it")
	if onNode != "" {
		file, err = p.Files.Read(onNode)
	}
	switch {
	case err == nil:
		p.r.copies = append(p.r.copies, onNode)
	case p.o.Preset == "" && len(p.source) == 0:
		return problem.WithHint(fmt.Errorf("read the configuration that the scheduler has, %s: %w", old, err), "give one with --config or --preset")
	default:
		return nil
	}
	if p.o.Preset == "" && len(p.source) == 0 {
		p.source, p.name = file.Data, onNode
		p.note("configuration %s: the one that the scheduler has", onNode)
	}
	return nil
}

// reportedVersion is what kube-scheduler --version prints.
var reportedVersion = regexp.MustCompile(`Kubernetes (v\S+)`)

// askBinary has the program in the image tell its release, and check configuration
// and flags. It returns the program's hash.
func (p *planner) askBinary(ctx context.Context, kubeconfig string, args []string) (sum string, err error) {
	dir, err := os.MkdirTemp("", "pmk-sched-replace-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the check: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		_, given := staticpod.Flag(p.r.words, name)
		return given
	})
	if len(args) > 0 {
		return "", problem.Invalidf("leave those fields out of the configuration", "the configuration asks for flags that the manifest does not have: %s", strings.Join(args, " "))
	}
	binary, err := p.Binary(ctx, p.r.Image, dir)
	if err != nil {
		return "", fmt.Errorf("read the program of image %s: %w", p.r.Image, err)
	}
	said, err := exec.CommandContext(ctx, binary.Path, "--version").CombinedOutput()
	if err != nil {
		return "", problem.WithHint(fmt.Errorf("run %s --version: %w: %s", binary.Path, err, strings.TrimSpace(string(said))), "is the image for this machine's architecture?")
	}
	version := reportedVersion.FindSubmatch(said)
	if version == nil {
		return "", problem.Invalidf("", "image %s: its program is no kube-scheduler: --version says %q", p.r.Image, strings.TrimSpace(string(said)))
	}
	release, err := versions.FromServer(string(version[1]))
	if err != nil {
		return "", err
	}
	switch want := p.info.Release; {
	case release.Major != want.Major || release.Minor != want.Minor:
		return "", problem.Invalidf("build it with `pmk-sched build --branch "+want.String()+"`", "image %s holds the kube-scheduler of %s, and the API server is of %s: the default scheduler has to be of the same minor", p.r.Image, release, want)
	case release.Compare(want) != 0:
		p.warnOf("the scheduler is of %s and the API server of %s", release, want)
	}
	policy, err := configcheck.WithPolicy(dir, p.rendered)
	if err != nil {
		return "", err
	}
	err = configcheck.Check(ctx, binary, dir, p.r.Configuration, kubeconfig, append(flagsToCheck(p.r.words), policy[len(p.rendered.Args):]...))
	if errors.Is(err, configcheck.ErrPartlyChecked) {
		p.warnOf("%v", err)
	} else if err != nil {
		return "", err
	}
	text, err := os.ReadFile(binary.Path)
	if err != nil {
		return "", fmt.Errorf("read the program of image %s: %w", p.r.Image, err)
	}
	return staticpod.Hash(text), nil
}
