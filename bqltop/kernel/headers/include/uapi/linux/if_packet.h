/* BCC includes this file; it brings what our programs need of it itself. */
