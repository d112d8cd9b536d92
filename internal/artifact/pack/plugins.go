package pack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	pmksched "github.com/pmk-sched/pmk-sched"
	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/image"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// Plugin is a plugin of an image with its place in the configuration: weight, arguments (YAML), and
// the extension points to enable it at. If Enable is nil, it is enabled at all that it implements.
type Plugin struct {
	plugins.Plugin
	Weight int
	Args   []byte
	Enable []string
}

// Contents are an image's plugins.
type Contents struct {
	Plugins []profiles.Plugin
	// Rules are the permissions that bundled plugins declare, by the plugin's name.
	Rules map[string]RulesFunc
	// Packages are the import paths of the plugins in Rules, from which [BundledRules] makes them
	// again.
	Packages map[string]string
	// Recipe describes the image's build. It is nil if the image was not built on this machine.
	Recipe *v1alpha1.Recipe
	// Undeclared are plugins that declare permissions in code that is not part of pmk-sched.
	Undeclared []plugins.Info
}

// ReadPlugins describes an image's plugins: the declared ones, or, if declared is empty, the
// plugins that the image was built with on this machine. [image.ReleaseInTag] in the image's name
// is replaced with the release.
func ReadPlugins(
	ctx context.Context, s *session.Session, reference string, release versions.Release, declared []Plugin,
) (*Contents, error) {
	reference = strings.ReplaceAll(reference, image.ReleaseInTag, release.String())
	built, recipe := builtImage(s.CacheDir, reference)
	if len(declared) == 0 {
		contents := describe(built)
		contents.Recipe = recipe
		for _, info := range built {
			contents.Plugins = append(contents.Plugins,
				profiles.Plugin{Name: info.Name, Points: info.Points, Signs: info.Signs})
		}
		return contents, nil
	}
	infos, placed, err := readSources(ctx, s, release, declared)
	if err != nil {
		return nil, err
	}
	contents := describe(infos)
	contents.Recipe = recipe
	contents.addRules(built)
	for i, info := range infos {
		if recipe != nil && !slices.Contains(PluginNames(built), info.Name) {
			return nil, problem.Invalidf("build it with --with "+declared[i].String(),
				"image %s was built without plugin %s", reference, info.Name)
		}
	}
	contents.Plugins = placed
	for _, info := range built {
		if !slices.Contains(PluginNames(infos), info.Name) {
			disabled := profiles.Plugin{Name: info.Name, Points: info.Points, Signs: info.Signs, Enable: []string{}}
			contents.Plugins = append(contents.Plugins, disabled)
		}
	}
	return contents, nil
}

// Sources returns the packages of plugins.
func Sources(list []Plugin) []plugins.Plugin {
	var sources []plugins.Plugin
	for _, p := range list {
		sources = append(sources, p.Plugin)
	}
	return sources
}

// readSources describes plugins from their sources, and their places in the configuration.
func readSources(
	ctx context.Context, s *session.Session, release versions.Release, list []Plugin,
) (infos []plugins.Info, placed []profiles.Plugin, err error) {
	infos, err = build.ReadPlugins(ctx, build.Options{
		Environment: Environment(s), Release: release, Plugins: Sources(list), Sources: pmksched.Sources,
	})
	for i, info := range infos {
		p := list[i]
		placed = append(placed, profiles.Plugin{
			Name: info.Name, Points: info.Points, Signs: info.Signs, Weight: p.Weight, Args: p.Args, Enable: p.Enable,
		})
	}
	return infos, placed, err
}

// Warn warns of each plugin whose permissions the user has to list.
func (c *Contents) Warn(s *session.Session) {
	for _, info := range c.Undeclared {
		s.Warn(fmt.Sprintf("plugin %s has func Rules (in %s): if it returns permissions, list them under "+
			"spec.rbac.rules of pmk-sched.yaml to grant them", info.Name, info.Package))
	}
}

// describe returns Contents with the plugins' permissions.
func describe(infos []plugins.Info) *Contents {
	c := &Contents{Rules: map[string]RulesFunc{}, Packages: map[string]string{}}
	c.addRules(infos)
	for _, info := range infos {
		if info.Rules && c.Rules[info.Name] == nil {
			c.Undeclared = append(c.Undeclared, info)
		}
	}
	return c
}

func (c *Contents) addRules(infos []plugins.Info) {
	for _, info := range infos {
		if rules := RulesOfPackage(info.Package); rules != nil {
			c.Rules[info.Name], c.Packages[info.Name] = rules, info.Package
		}
	}
}

// BundledRules returns the permissions that bundled plugins declare, by the plugin's name. packages
// are their import paths.
func BundledRules(packages map[string]string) map[string]RulesFunc {
	rules := map[string]RulesFunc{}
	for name, path := range packages {
		if declared := RulesOfPackage(path); declared != nil {
			rules[name] = declared
		}
	}
	return rules
}

// builtImage returns the plugins and the recipe of an image. They are nil if it was not built on
// this machine.
func builtImage(cache, reference string) ([]plugins.Info, *v1alpha1.Recipe) {
	name, err := image.CanonicalName(reference)
	if err != nil {
		return nil, nil
	}
	result, found, err := build.FindByImage(cache, name)
	if err != nil || !found {
		return nil, nil
	}
	return result.Info.Plugins, &result.Recipe
}

// PluginNames returns the names by which a configuration refers to the plugins.
func PluginNames(infos []plugins.Info) []string {
	var names []string
	for _, p := range infos {
		names = append(names, p.Name)
	}
	return names
}

// hashLength is the length of the plugins' hash in a tag.
const hashLength = 10

// TagSuffix returns the suffix of a tag for images with plugins. It differs for other plugins or
// other sources of them, since a runtime does not pull a tag that it has. It is empty without
// plugins.
func TagSuffix(list []plugins.Plugin, imports []string) (string, error) {
	sum, err := plugins.Hash(list, imports, pmksched.Sources)
	if err != nil || sum == "" {
		return "", err
	}
	return "-plugins-" + sum[:hashLength], nil
}
