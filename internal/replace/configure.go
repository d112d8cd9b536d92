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

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
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
	request, err := p.rendering(s, c)
	if err != nil {
		return nil, err
	}
	kubeconfig, _ := staticpod.Flag(s.args, "kubeconfig")
	kubeconfig = cmp.Or(kubeconfig, staticpod.InContainer(s.manifest.Pod, s.container, s.layout.Kubeconfig))
	if kubeconfig == "" {
		return nil, problem.Invalidf("", "no volume of the container %s has the scheduler's kubeconfig %s",
			schedulerContainer, s.layout.Kubeconfig)
	}
	c.copies = append(c.copies, s.layout.Kubeconfig)
	request.Kubeconfig = kubeconfig
	if err := p.checkPolicyFlags(s); err != nil {
		return nil, err
	}
	if c.rendered, err = request.Render(); err != nil {
		return nil, err
	}
	notes, warnings, err := deploy.DescribeConfiguration(c.rendered, request.SourceName, p.info.Release, p.o.Plugins,
		inspect.FeatureGates(s.args))
	if err != nil {
		return nil, err
	}
	p.notes, p.warnings = append(p.notes, notes...), append(p.warnings, warnings...)
	c.text = c.rendered.YAML
	if p.originalConfig == "" {
		if c.text, notes, warnings, err = convertFlags(c.text, request.Source, s.args,
			p.info.Release.Rules()); err != nil {
			return nil, err
		}
		p.notes, p.warnings = append(p.notes, notes...), append(p.warnings, warnings...)
	}
	if c.binary, err = p.checkWithBinary(ctx, s, image, c, kubeconfig); err != nil {
		return nil, err
	}
	c.hash = staticpod.Hash(c.text)[:hashLength]
	c.id = staticpod.Hash([]byte(image + "\n" + c.hash + "\n" + c.binary + string(c.rendered.Policy)))[:hashLength]
	c.file = path.Join(s.layout.ConfigDir, configStem+c.hash+".yaml")
	return c, nil
}

// rendering returns the input for the configuration. The original scheduler's configuration, which
// the backup keeps, is the source for a request without one.
func (p *planner) rendering(s *scheduler, c *configuration) (r profiles.Request, err error) {
	if r, _, err = deploy.Rendering(p.request); err != nil {
		return r, err
	}
	wirings, err := deploy.Wirings(p.request)
	if err != nil {
		return r, err
	}
	for _, w := range wirings {
		r.Extenders = append(r.Extenders, w.Extender)
	}
	for _, e := range r.Extenders {
		p.notef("extender %s at %s", e.Name, e.URLPrefix)
	}
	r.Release, r.LeaseName, r.LeaderElect, r.Enable = p.info.Release, schedulerLease, s.Elects, p.o.Plugins
	r.InsecurePort = defaultInsecurePort
	if p.originalConfig == "" {
		return r, nil
	}
	onNode := staticpod.OnHost(s.manifest.Pod, s.container, p.originalConfig)
	original := !isConfigured(p.request.Spec.Configuration)
	var file *staticpod.File
	err = errors.New("it is not in a volume of the node")
	if onNode != "" {
		file, err = p.Files.Read(onNode)
	}
	switch {
	case err != nil && original:
		return r, problem.Errorf("specify one with --config or --preset", "read the current configuration %s: %w",
			p.originalConfig, err)
	case err != nil:
		return r, nil //nolint:nilerr // it is replaced by the configuration that was given
	case original:
		p.notef("configuration %s: the current one", onNode)
		r.Source, r.SourceName = file.Data, onNode
	}
	c.copies = append(c.copies, onNode)
	return r, nil
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
	err = p.CheckProgram(ctx, binary, dir, deploy.ProgramCheck{
		Request: configcheck.Request{Configuration: c.text, Kubeconfig: kubeconfig, Policy: c.rendered.Policy, Args: s.args,
			Warn: func(text string) { p.warnf("%s", text) }},
		Compare: func(output string, unread error, _ string) (string, error) {
			return p.compareRelease(image, output, unread)
		},
		FlagsHint: "nothing was changed; correct the flags in " + s.layout.Manifest + " first",
	})
	if errors.Is(err, configcheck.ErrNoBinary) {
		err = fmt.Errorf("run the program of image %s: %w", image, err)
	}
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(binary.Path)
	if err != nil {
		return "", fmt.Errorf("read the program of image %s: %w", image, err)
	}
	return staticpod.Hash(text), nil
}

// compareRelease keeps the program's release, and compares it with the API server's minor.
func (p *planner) compareRelease(image, output string, unread error) (warning string, err error) {
	if unread != nil {
		return "", fmt.Errorf("read the release of image %s: %w", image, unread)
	}
	var ok bool
	if p.release, ok = configcheck.ParseVersion(output); !ok {
		return "", problem.Invalidf("",
			"the program of image %s is not a kube-scheduler of a release: --version prints %q", image, output)
	}
	return configcheck.ReleaseCheck{Image: image, Want: p.info.Release}.Compare(p.release)
}
