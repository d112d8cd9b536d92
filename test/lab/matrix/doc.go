// Package matrix tests the whole of pmk-sched on real masters of many releases, one lab at a time: the lab comes up, detect
// says what is there, the scheduler of the release is built, deployed and proven, and nothing stays.
//
// With the build tag releases it looks at one release, with labmatrix at one of every kind. What was compiled is kept, so that
// a run that was stopped soon comes to where it was.
package matrix
