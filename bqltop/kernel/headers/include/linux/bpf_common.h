/* Included by BCC's copy of the bpf header, for the constants of classic BPF; our programs use none of them. */
