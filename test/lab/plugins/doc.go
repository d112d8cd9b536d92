// Package plugins tests plugins compiled into the scheduler of a release, which is deployed
// alongside the default one on a real control-plane node.
//
// Without a build tag it uses v1.24.3; with labs one release of each form that the scheduling
// framework has had, and plugins of another project.
package plugins
