// Package volumes owns the directories that carry taint from container to container (B34): the programs that see them used, which
// directories they are, and what they carry, in the kernel and on disk. It changes no container's taint but by the kernel's rule that
// who has read from a volume has its taint.
package volumes
