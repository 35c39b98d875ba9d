// Package parents guards the cgroups whose children are containers: the policy's, and
// /weir for sessions. It guards those again that are made again, and takes children in
// with the taint that is stored of them. It never clears taint, and makes no cgroup but /weir.
package parents
