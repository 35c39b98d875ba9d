// Package parents guards the cgroups whose children are containers, the policy's and
// /weir for sessions, and those that are containers by themselves. It makes those that are not there where nobody else minds, guards those
// again that are made again, and takes children in with the taint that is stored of them. It
// never clears taint, and makes no container.
package parents
