// Package plugins tests plugins where they are to work: compiled into the scheduler of a release, deployed beside the default one on a
// real master in a lab, one lab at a time.
//
// Without a build tag it looks at v1.24.3, with pluginlab at one release of each form that the scheduling framework has had, and at
// plugins of another project. What was compiled is kept, so that a run that was stopped soon comes to where it was.
package plugins
