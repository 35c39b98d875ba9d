// Package pathguard compares paths with patterns as the systems that open them would: whatever prefix, separator, case, short name, stream or
// trailing dot is in the way (K7). It opens nothing.
package pathguard
