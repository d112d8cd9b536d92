// Package adapter binds portable plugins to a Kubernetes release's scheduling framework.
//
// The framework's interfaces differ between minors. Where they do, this package has a file for each
// form, and the file name says which minors it is for: x_from24.go is for 1.24 and later,
// x_before24.go for earlier minors, x_from24_before30.go for 1.24 to 1.29. A file without such a
// suffix is for all minors. The files forms_*.go have all forms of their minors. Types that only
// moved to another package or became interfaces are aliases, in the files types_*.go; the rest of
// the package uses the aliases.
//
// internal/artifact/build copies the files for a release into the module that it generates. The
// repository itself compiles the files for the Kubernetes release in its go.mod. All other files
// begin with the line `//go:build ignore`, which internal/artifact/build removes. The files compile
// with the Go version of their release, the files without a suffix with Go 1.15.
//
// There is a struct for each extension point, named after the point with the suffix Point. To bind
// a plugin, embed Base and the structs of the points that the plugin implements, and no other
// structs: the framework calls a plugin at every extension point whose interface it satisfies.
//
//	type loadAware struct {
//		adapter.Base
//		adapter.FilterPoint
//		adapter.ScorePoint
//	}
//
//	func newLoadAware(ctx context.Context, host *adapter.Host) (adapter.Plugin, error) {
//		p, err := loadaware.New(ctx, host.Arguments, host)
//		if err != nil {
//			return nil, err
//		}
//		return &loadAware{
//			Base:        host.Base(p),
//			FilterPoint: adapter.FilterPoint{Host: host, Plugin: p},
//			ScorePoint:  adapter.ScorePoint{Host: host, Plugin: p},
//		}, nil
//	}
//
//	app.WithPlugin(loadaware.Name, adapter.Factory(loadaware.Name, newLoadAware))
//
// When the scheduler starts, Factory compares the struct with the plugin's methods and fails if an
// extension point is missing. internal/artifact/build generates this code for every plugin.
package adapter
